package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestManifests applies the files as they are, in each of the ways that their
// README tells of, and asks the server what that permits: this and no more.
func TestManifests(t *testing.T) {
	server := apiserver.Start(t, controlplane.Options{})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	_, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: manifestNamespace},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	own, system, other := manifestNamespace, metav1.NamespaceSystem, "kube-public"
	everywhere := func(verbs ...string) (all []permission) {
		for _, namespace := range []string{own, system, other} {
			all = append(all, in(namespace, eventsResource, verbs...)...)
		}
		return all
	}
	for _, row := range []struct {
		name  string
		files []string
		want  []permission
	}{
		{"all namespaces", mayWrite, everywhere("create", "patch")},
		{"all namespaces, and list", slices.Concat(mayWrite, mayList), everywhere("create", "patch", "list")},
		{"one namespace", mayWriteAndListInOne, in(own, eventsResource, "create", "patch", "list")},
		{
			"one namespace, and cluster-scoped objects", slices.Concat(mayWriteAndListInOne, mayWriteAboutClusterToo),
			slices.Concat(in(own, eventsResource, "create", "patch", "list"), in(system, eventsResource, "create", "patch", "list")),
		},
		{
			"leader election", mayLead,
			slices.Concat(in(own, "leases.coordination.k8s.io", "get", "create", "update"), in(own, "events", "create", "patch")),
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := account{namespace: own}
			a.grant(t, clients, row.files)
			apiserver.Eventually(t, patience, func(ctx context.Context) error {
				var got []permission
				for _, p := range everyPermission(own, system, other) {
					ok, err := a.may(ctx, clients, p)
					if err != nil {
						return err
					}
					if ok {
						got = append(got, p)
					}
				}
				// What the row before was granted takes a moment to go.
				if !slices.Equal(sorted(row.want), sorted(got)) {
					return fmt.Errorf("may %v, want %v", got, row.want)
				}
				return nil
			})
		})
	}
}

// in returns permissions in one namespace.
func in(namespace, resource string, verbs ...string) (all []permission) {
	for _, verb := range verbs {
		all = append(all, permission{verb, resource, namespace})
	}
	return all
}

// everyPermission returns all that the manifests could be about.
func everyPermission(namespaces ...string) (all []permission) {
	for _, namespace := range namespaces {
		for _, resource := range []string{eventsResource, "events", "leases.coordination.k8s.io", "pods"} {
			all = append(all, in(namespace, resource, "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")...)
		}
	}
	return all
}

func sorted(permissions []permission) []permission {
	return slices.SortedFunc(slices.Values(permissions), func(a, b permission) int {
		return strings.Compare(a.String(), b.String())
	})
}
