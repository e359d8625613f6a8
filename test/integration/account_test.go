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

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// The service account and the namespace that the manifests in docs/rbac name.
const (
	manifestAccount   = "backup-controller"
	manifestNamespace = "backup-system"
)

// What docs/rbac/README.md has users apply.
var (
	mayWrite                = []string{"recorder.yaml", "binding.yaml"}
	mayList                 = []string{"recorder-list.yaml", "binding-list.yaml"}
	mayWriteAndListInOne    = []string{"namespaced.yaml"}
	mayWriteAboutClusterToo = []string{"namespaced-cluster-scoped.yaml"}
	mayLead                 = []string{"leader-election.yaml"}
)

// strict decodes manifests and refuses what the API does not have.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// account is the service account of a test, for which the manifests are meant.
type account struct {
	namespace string
	// suffix is appended to the names in the manifests, so that tests on one
	// server have roles of their own.
	suffix string
}

// accountIn returns the account of a test that has this namespace for itself.
func accountIn(namespace string) account {
	return account{namespace: namespace, suffix: "-" + namespace}
}

// user returns the name by which the API server knows the account.
func (a account) user() string {
	return fmt.Sprintf("system:serviceaccount:%s:%s", a.namespace, manifestAccount)
}

// config returns a copy of an administrator's configuration for the account.
func (a account) config(admin *rest.Config) *rest.Config {
	c := rest.CopyConfig(admin)
	c.Impersonate = rest.ImpersonationConfig{UserName: a.user()}
	return c
}

// granted is what grant has created.
type granted struct {
	clients *kubernetes.Clientset
	objects []runtime.Object
}

// grant creates what the files in docs/rbac say, for the account, and waits until
// the server goes by it. It is taken back at the end of the test, if not before.
func (a account) grant(t *testing.T, clients *kubernetes.Clientset, files ...[]string) *granted {
	t.Helper()
	g := &granted{clients: clients}
	for _, file := range slices.Concat(files...) {
		for _, object := range readManifests(t, "rbac/"+file) {
			a.adapt(object)
			require.NoError(t, g.create(t.Context(), object), file)
			g.objects = append(g.objects, object)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := apiserver.CleanupContext()
		defer cancel()
		g.delete(ctx, t)
	})
	apiserver.Eventually(t, patience, func(ctx context.Context) error { return a.hasAll(ctx, g) })
	return g
}

// readManifests returns the objects in a file of docs. A field that the API
// does not have fails the test.
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

// adapt makes an object of the manifests one for the account. The rules are as
// they were.
func (a account) adapt(object runtime.Object) {
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		o.Name += a.suffix
	case *rbacv1.Role:
		o.Name += a.suffix
		o.Namespace = a.namespaceFor(o.Namespace)
	case *rbacv1.ClusterRoleBinding:
		o.Name += a.suffix
		a.adaptBinding(&o.RoleRef, o.Subjects)
	case *rbacv1.RoleBinding:
		o.Name += a.suffix
		o.Namespace = a.namespaceFor(o.Namespace)
		a.adaptBinding(&o.RoleRef, o.Subjects)
	}
}

func (a account) adaptBinding(role *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	role.Name += a.suffix
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

func (g *granted) create(ctx context.Context, object runtime.Object) (err error) {
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		_, err = g.clients.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.Role:
		_, err = g.clients.RbacV1().Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRoleBinding:
		_, err = g.clients.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.RoleBinding:
		_, err = g.clients.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	default:
		err = fmt.Errorf("a %T is no manifest for RBAC", object)
	}
	return err
}

// delete takes back what was granted.
func (g *granted) delete(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, object := range g.objects {
		var err error
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			err = g.clients.RbacV1().ClusterRoles().Delete(ctx, o.Name, metav1.DeleteOptions{})
		case *rbacv1.Role:
			err = g.clients.RbacV1().Roles(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{})
		case *rbacv1.ClusterRoleBinding:
			err = g.clients.RbacV1().ClusterRoleBindings().Delete(ctx, o.Name, metav1.DeleteOptions{})
		case *rbacv1.RoleBinding:
			err = g.clients.RbacV1().RoleBindings(o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{})
		}
		require.NoError(t, err)
	}
	g.objects = nil
}

// withdraw takes back what was granted and waits until the server goes by that.
func (a account) withdraw(t *testing.T, g *granted, verbs ...string) {
	t.Helper()
	g.delete(t.Context(), t)
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		for _, verb := range verbs {
			if ok, err := a.may(ctx, g.clients, permission{verb, eventsResource, a.namespace}); ok || err != nil {
				return fmt.Errorf("may %s: %v, %w", verb, ok, err)
			}
		}
		return nil
	})
}

// hasAll returns an error unless the account may do what was granted.
func (a account) hasAll(ctx context.Context, g *granted) error {
	for _, object := range g.objects {
		namespace, rules := a.namespace, []rbacv1.PolicyRule(nil)
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules = o.Rules
		case *rbacv1.Role:
			namespace, rules = o.Namespace, o.Rules
		}
		for _, rule := range rules {
			for _, verb := range rule.Verbs {
				p := permission{verb, resourceOf(rule), namespace}
				if ok, err := a.may(ctx, g.clients, p); !ok || err != nil {
					return fmt.Errorf("may %v: %v, %w", p, ok, err)
				}
			}
		}
	}
	return nil
}

// resourceOf returns the resource of a rule of the manifests, as kubectl writes
// it.
func resourceOf(rule rbacv1.PolicyRule) string {
	return strings.TrimSuffix(rule.Resources[0]+"."+rule.APIGroups[0], ".")
}

// permission is to do something in a namespace.
type permission struct{ verb, resource, namespace string }

func (p permission) String() string { return p.verb + " " + p.resource + " in " + p.namespace }

// may asks the server whether the account has a permission.
func (a account) may(ctx context.Context, clients kubernetes.Interface, p permission) (bool, error) {
	resource, group, _ := strings.Cut(p.resource, ".")
	review, err := clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   a.user(),
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + a.namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: p.namespace, Verb: p.verb, Group: group, Resource: resource,
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
