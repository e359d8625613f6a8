package query

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// TestRootsOfDeletedObjects finds the roots of objects whose names only their controllers tell.
func TestRootsOfDeletedObjects(t *testing.T) {
	long := strings.Repeat("long-name-", 6) // the API server truncates it
	metadataOf := func(apiVersion, kind, name string, owners ...*metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
		m := metadataOf(apiVersion, kind, name, owners...)
		m.UID = types.UID("uid of " + kind + " " + name)
		return m
	}
	deployment := metadataOf("apps/v1", "Deployment", "web")
	set := metadataOf("apps/v1", "ReplicaSet", "web-6d4cf9b7c", deployment)
	rolled := metadataOf("apps/v1", "ReplicaSet", "api-5b8d", metadataOf("argoproj.io/v1alpha1", "Rollout", "api"))
	cronJob := metadataOf("batch/v1", "CronJob", "backup")
	objects := []runtime.Object{
		deployment, set, rolled, cronJob,
		metadataOf("v1", "Pod", "web-6d4cf9b7c-9tq8d", set),
		metadataOf("apps/v1", "StatefulSet", "web"),
		metadataOf("apps/v1", "DaemonSet", "node-exporter2"),
		metadataOf("apps/v1", "DaemonSet", "twice"), metadataOf("batch/v1", "Job", "twice"),
		metadataOf("batch/v1", "Job", "migrate"), metadataOf("batch/v1", "Job", "backup-29100000", cronJob),
		metadataOf("apps/v1", "ReplicaSet", long+"7d9f", metadataOf("apps/v1", "Deployment", long)),
		metadataOf("v1", "Pod", "clone-x7k2p", metadataOf("apps.kruise.io/v1alpha1", "CloneSet", "clone")),
	}
	client, mapper := metadataServer(t, objects...)
	roots, errs := (&Owners{Metadata: client, Mapper: mapper}).Roots(t.Context(), "shop")
	require.Empty(t, errs)
	for name, want := range map[string]string{
		"Pod web-6d4cf9b7c-9tq8d":         "Deployment web", // it exists
		"Pod web-6d4cf9b7c-x7k2p":         "Deployment web",
		"Pod web-5f6b8-x7k2p":             "Deployment web", // its ReplicaSet is gone, too
		"ReplicaSet web-5f6b8":            "Deployment web",
		"Pod web-7":                       "StatefulSet web",
		"Pod api-5b8d-x7k2p":              "Rollout api",
		"Pod api-7c9d-x7k2p":              "Rollout api",
		"Pod node-exporter2-x7k2p":        "DaemonSet node-exporter2",
		"Pod backup-29100000-x7k2p":       "CronJob backup",
		"Pod backup-29100060-x7k2p":       "CronJob backup",
		"Job backup-29100060":             "CronJob backup",
		"Pod migrate-x7k2p":               "Job migrate",
		"Job migrate-3":                   "",
		"Pod migrate-3-x7k2p":             "Job migrate",
		"Pod clone-b2b2b":                 "CloneSet clone",
		"Pod " + (long)[:58] + "x7k2p":    "Deployment " + long,
		"Pod twice-x7k2p":                 "", // of the DaemonSet or of the Job
		"Pod web-hello":                   "",
		"Pod web-6d4cf9b7c-hello":         "",
		"Pod other-6d4cf9b7c-x7k2p":       "",
		"Pod x7k2p":                       "",
		"Pod web":                         "",
		"Pod ":                            "",
		"ReplicaSet web":                  "",
		"Deployment web-6d4cf9b7c-x7k2p":  "",
		"PersistentVolumeClaim web-x7k2p": "",
	} {
		kind, name, _ := strings.Cut(name, " ")
		root, ok := roots.Of(series.Reference{Kind: kind, Namespace: "shop", Name: name, UID: "u"})
		assert.Equal(t, want, strings.TrimSpace(root.Kind+" "+root.Name), "%s %s", kind, name)
		assert.Equal(t, want != "", ok)
		_, elsewhere := roots.Of(series.Reference{Kind: kind, Namespace: "other", Name: name, UID: "u"})
		assert.False(t, elsewhere)
	}
	bare := func(objects []Object) (all []string) {
		for _, o := range objects {
			all = append(all, o.Kind+" "+o.Name)
		}
		return all
	}
	pod := series.Reference{Kind: "Pod", Namespace: "shop", Name: "web-6d4cf9b7c-x7k2p"}
	assert.Equal(t, []string{"ReplicaSet web-6d4cf9b7c", "Deployment web"}, bare(roots.Owners(pod)))
	pod.Name = "web-5f6b8-x7k2p"
	assert.Equal(t, []string{"Deployment web"}, bare(roots.Owners(pod)))
	assert.ElementsMatch(t, []string{"ReplicaSet web-6d4cf9b7c", "Pod web-6d4cf9b7c-9tq8d"}, bare(roots.Dependents(Object{Kind: "Deployment", Namespace: "shop", Name: "web"})))
	assert.Empty(t, (&Roots{}).Owners(pod))
}
