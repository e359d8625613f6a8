package cli

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
)

func message(err error) string {
	var denied *query.PermissionError
	var failed *url.Error
	switch {
	case errors.As(err, &denied):
		where := "in all namespaces"
		if denied.Namespace != "" {
			where = "in the namespace " + denied.Namespace
		}
		resource := schema.GroupResource{Group: denied.Group, Resource: denied.Resource}
		return text.Clean(fmt.Sprintf("missing permission %q %s: %v", denied.Verb+" "+resource.String(), where, denied.Err))
	case apierrors.IsUnauthorized(err):
		return "the server does not accept your credentials: log in again, or choose another context (kubectl config get-contexts)"
	case errors.As(err, &failed):
		return text.Clean(fmt.Sprintf("cannot reach the server %s: %v%s", server(failed.URL), failed.Err, hint(failed.URL)))
	case clientcmd.IsEmptyConfig(err):
		return "no cluster is configured: set KUBECONFIG, or pass --kubeconfig or --server"
	case strings.Contains(err.Error(), "field label not supported"):
		return text.Clean(strings.TrimPrefix(err.Error(), "query: ")) + ": want " + strings.Join(fieldLabels, ", ")
	default:
		return text.Clean(strings.Replace(strings.TrimPrefix(err.Error(), "query: "), ": query: ", ": ", 1))
	}
}

func advice(err error) string {
	if denied := (*query.PermissionError)(nil); errors.As(err, &denied) && denied.Resource == "events" {
		return ": pass -n with a namespace whose Events you may list"
	}
	return ""
}

// fieldLabels are the fields by which kube-apiserver selects Events.
var fieldLabels = []string{
	"metadata.name", "metadata.namespace", "regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
	"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type",
}

func server(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host
}

// hint explains the address that clients use without a kubeconfig.
func hint(address string) string {
	if strings.HasPrefix(address, "http://localhost:8080/") {
		return " (this is the default without a kubeconfig: set KUBECONFIG, or pass --kubeconfig or --server)"
	}
	return ""
}
