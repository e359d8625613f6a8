package integration

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// step is how far a fake clock moves between two requests of a test. It is
// shorter than every interval of the recorder.
const step = time.Minute

// startLogging is start with a log. The function that it returns finds the log
// lines that contain all the given words.
func (r *recording) startLogging(t *testing.T) (lines func(words ...string) []string) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	require.NoError(t, r.StartRecordingToSinkWithContext(klog.NewContext(t.Context(), logger)))
	sink, ok := logger.GetSink().(ktesting.Underlier)
	require.True(t, ok)
	return func(words ...string) (found []string) {
	line:
		for line := range strings.Lines(sink.GetBuffer().String()) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue line
				}
			}
			found = append(found, line)
		}
		return found
	}
}

// eventuallyLater is eventually for a recorder with a fake clock, which it steps
// when a requirement of check fails.
func eventuallyLater(t *testing.T, clock *clocktesting.FakeClock, check func(*assert.CollectT)) {
	t.Helper()
	eventually(t, func(c *assert.CollectT) {
		passed := false
		defer func() {
			if !passed {
				clock.Step(step)
			}
		}()
		check(c)
		passed = true
	})
}

// The service account and the namespace in docs/rbac.
const (
	manifestAccount   = "backup-controller"
	manifestNamespace = "backup-system"
)

// The files that docs/rbac/README.md tells users to apply.
var (
	mayWrite                = []string{"recorder.yaml", "binding.yaml"}
	mayList                 = []string{"recorder-list.yaml", "binding-list.yaml"}
	mayWriteAndListInOne    = []string{"namespaced.yaml"}
	mayWriteAboutClusterToo = []string{"namespaced-cluster-scoped.yaml"}
	mayLead                 = []string{"leader-election.yaml"}
)

// strict decodes manifests and rejects unknown fields.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// account is the service account of a test.
type account struct {
	namespace string
	// suffix is appended to the names in the manifests, so that each test on a
	// shared server has its own roles.
	suffix string
}

func accountIn(namespace string) account {
	return account{namespace: namespace, suffix: "-" + namespace}
}

func (a account) user() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", a.namespace, manifestAccount)
}

func (a account) config(admin *rest.Config) *rest.Config {
	c := rest.CopyConfig(admin)
	c.Impersonate = rest.ImpersonationConfig{UserName: a.user()}
	return c
}

type granted struct {
	clients *kubernetes.Clientset
	objects []rbacObject
}

type rbacObject interface {
	runtime.Object
	metav1.Object
}

// grant applies files of docs/rbac for the account, and waits until the server
// authorizes it. The end of the test deletes the objects.
func (a account) grant(t *testing.T, clients *kubernetes.Clientset, files ...[]string) {
	t.Helper()
	g := &granted{clients: clients}
	for _, file := range slices.Concat(files...) {
		for _, manifest := range readManifests(t, "rbac/"+file) {
			object := manifest.(rbacObject)
			a.adapt(object)
			require.NoError(t, g.request(clients.RbacV1().RESTClient().Post(), object).Body(object).Do(t.Context()).Error(), file)
			g.objects = append(g.objects, object)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := apiserver.CleanupContext()
		defer cancel()
		g.delete(ctx, t)
	})
	eventually(t, func(c *assert.CollectT) { a.requireAll(c, g) })
}

// readManifests returns the objects in a file of docs. An unknown field fails the
// test.
func readManifests(t *testing.T, file string) []runtime.Object {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(file)))
	require.NoError(t, err)
	var objects []runtime.Object
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err, file)
		object, _, err := strict.Decode(document, nil, nil)
		require.NoError(t, err, file)
		objects = append(objects, object)
	}
}

// adapt changes the names and namespaces in a manifest, but not the rules.
func (a account) adapt(object rbacObject) {
	object.SetName(object.GetName() + a.suffix)
	object.SetNamespace(a.namespaceFor(object.GetNamespace()))
	var subjects []rbacv1.Subject
	switch o := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		o.RoleRef.Name += a.suffix
		subjects = o.Subjects
	case *rbacv1.RoleBinding:
		o.RoleRef.Name += a.suffix
		subjects = o.Subjects
	}
	for i := range subjects {
		subjects[i].Namespace = a.namespaceFor(subjects[i].Namespace)
	}
}

func (a account) namespaceFor(namespace string) string {
	if namespace == manifestNamespace {
		return a.namespace
	}
	return namespace
}

// request adds the path of the resource of an object to a request.
func (g *granted) request(r *rest.Request, object rbacObject) *rest.Request {
	resource, _ := meta.UnsafeGuessKindToResource(object.GetObjectKind().GroupVersionKind())
	return r.NamespaceIfScoped(object.GetNamespace(), object.GetNamespace() != "").Resource(resource.Resource)
}

func (g *granted) delete(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, object := range g.objects {
		require.NoError(t, g.request(g.clients.RbacV1().RESTClient().Delete(), object).Name(object.GetName()).Do(ctx).Error())
	}
	g.objects = nil
}

func (a account) requireAll(t require.TestingT, g *granted) {
	for _, object := range g.objects {
		namespace, rules := a.namespace, []rbacv1.PolicyRule(nil)
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules = o.Rules
		case *rbacv1.Role:
			namespace, rules = o.Namespace, o.Rules
		}
		for _, rule := range rules {
			resource := strings.TrimSuffix(rule.Resources[0]+"."+rule.APIGroups[0], ".")
			for _, p := range in(namespace, resource, rule.Verbs...) {
				require.True(t, a.may(t, g.clients, p), "%v", p)
			}
		}
	}
}

// permission is a permission in a namespace, for a resource as kubectl writes it.
type permission struct{ verb, resource, namespace string }

func in(namespace, resource string, verbs ...string) (all []permission) {
	for _, verb := range verbs {
		all = append(all, permission{verb, resource, namespace})
	}
	return all
}

func (a account) may(t require.TestingT, clients kubernetes.Interface, p permission) bool {
	resource, group, _ := strings.Cut(p.resource, ".")
	review, err := clients.AuthorizationV1().SubjectAccessReviews().Create(context.Background(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   a.user(),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + a.namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: p.namespace, Verb: p.verb, Group: group, Resource: resource,
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.Allowed
}

// TestManifests applies docs/rbac unchanged, in each way that its README
// describes. The server must grant exactly the documented permissions.
func TestManifests(t *testing.T) {
	server := apiserver.Start(t, controlplane.Options{})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	apiserver.CreateNamespace(t, clients, manifestNamespace)
	own, system := manifestNamespace, metav1.NamespaceSystem
	namespaces := []string{own, system, metav1.NamespaceDefault, "kube-public"}
	inBothGroups := func(namespace string, verbs ...string) []permission {
		return append(in(namespace, eventsResource, verbs...), in(namespace, "events", verbs...)...)
	}
	everywhere := func(verbs ...string) (all []permission) {
		for _, namespace := range namespaces {
			all = append(all, inBothGroups(namespace, verbs...)...)
		}
		return all
	}
	var possible []permission // all that the manifests could grant
	for _, namespace := range namespaces {
		for _, resource := range []string{eventsResource, "events", "leases.coordination.k8s.io", "pods"} {
			possible = append(possible, in(namespace, resource, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")...)
		}
	}
	for _, row := range []struct {
		name  string
		files []string
		want  []permission
	}{
		{"all namespaces", mayWrite, everywhere("create", "patch")},
		{"all namespaces, and list", slices.Concat(mayWrite, mayList), everywhere("create", "patch", "list")},
		{"one namespace", mayWriteAndListInOne, inBothGroups(own, "create", "patch", "list")},
		{
			"one namespace, and cluster-scoped objects", slices.Concat(mayWriteAndListInOne, mayWriteAboutClusterToo),
			slices.Concat(inBothGroups(own, "create", "patch", "list"), inBothGroups(system, "create", "patch", "list")),
		},
		{
			"leader election", mayLead,
			slices.Concat(in(own, "leases.coordination.k8s.io", "get", "create", "update"), in(own, "events", "create", "patch")),
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := account{namespace: own}
			a.grant(t, clients, row.files)
			// The server needs a moment to forget the permissions of the previous row.
			eventually(t, func(c *assert.CollectT) {
				var got []permission
				for _, p := range possible {
					if a.may(c, clients, p) {
						got = append(got, p)
					}
				}
				assert.ElementsMatch(c, row.want, got)
			})
		})
	}
}
