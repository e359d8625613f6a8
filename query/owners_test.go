package query

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/eventseries/eventseries/series"
)

// controls says that an owner is the controller of an object.
var controls = true

func metadataOf(apiVersion, kind, name string, owners ...*metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
	}
	if kind == "Node" {
		m.Namespace = ""
	}
	for _, owner := range owners {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: &controls})
	}
	return m
}

// metadataServer has some objects. It does not serve DaemonSets unless there are some.
func metadataServer(t *testing.T, objects ...runtime.Object) (*fake.FakeMetadataClient, meta.RESTMapper) {
	t.Helper()
	scheme := fake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, {Group: "apps", Version: "v1"}, {Group: "batch", Version: "v1"}})
	for _, kind := range DefaultDependents() {
		if kind.Kind != "DaemonSet" || slices.ContainsFunc(objects, func(o runtime.Object) bool { return o.GetObjectKind().GroupVersionKind() == kind }) {
			mapper.Add(kind, meta.RESTScopeNamespace)
		}
	}
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	return fake.NewSimpleMetadataClient(scheme, objects...), mapper
}

func TestOwners(t *testing.T) {
	deployment := metadataOf("apps/v1", "Deployment", "checkout")
	rs := metadataOf("apps/v1", "ReplicaSet", "checkout-1", deployment)
	old := metadataOf("apps/v1", "ReplicaSet", "checkout-0", deployment)
	pod := metadataOf("v1", "Pod", "checkout-1-a", rs)
	oldPod := metadataOf("v1", "Pod", "checkout-0-a", old)
	claim := metadataOf("v1", "PersistentVolumeClaim", "data", pod)
	node := metadataOf("v1", "Node", "n1")
	static := metadataOf("v1", "Pod", "static-n1", node)
	mirrored := metadataOf("v1", "Node", "n2")
	mirror := metadataOf("v1", "Pod", "mirror-n2", mirrored)
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash-of-mirror-n2"}
	gone := metadataOf("batch/v1", "Job", "gone")
	orphan := metadataOf("v1", "Pod", "orphan", gone)
	custom := metadataOf("example.com/v1", "Thing", "thing")
	ownedByCustom := metadataOf("v1", "Pod", "of-thing", custom)
	a, b := metadataOf("v1", "Pod", "a"), metadataOf("v1", "Pod", "b")
	a.OwnerReferences = metadataOf("v1", "Pod", "", b).OwnerReferences // a cycle
	b.OwnerReferences = metadataOf("v1", "Pod", "", a).OwnerReferences

	for name, tt := range map[string]struct {
		object Object
		deny   string // verb and resource
		want   []string
		errs   []string
	}{
		"Pod":                   {Object{APIVersion: "v1", Kind: "Pod", Name: "checkout-1-a"}, "", []string{"checkout-1-a", "checkout-1", "checkout"}, nil},
		"Deployment":            {Object{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "checkout"}, "", []string{"checkout"}, nil},
		"Node":                  {Object{APIVersion: "v1", Kind: "Node", Name: "n1", ClusterScoped: true}, "", []string{"n1"}, nil},
		"mirror Pod":            {Object{APIVersion: "v1", Kind: "Pod", Name: "mirror-n2"}, "", []string{"mirror-n2", "hash-of-mirror-n2", "n2"}, nil},
		"static Pod":            {Object{APIVersion: "v1", Kind: "Pod", Name: "static-n1"}, "", []string{"static-n1", "n1"}, nil},
		"owner that is gone":    {Object{APIVersion: "v1", Kind: "Pod", Name: "orphan"}, "", []string{"orphan", "gone"}, nil},
		"owner of unknown kind": {Object{APIVersion: "v1", Kind: "Pod", Name: "of-thing"}, "", []string{"of-thing", "thing"}, []string{`query: kind "Thing" of "example.com/v1": `}},
		"cycle":                 {Object{APIVersion: "v1", Kind: "Pod", Name: "a"}, "", []string{"a", "b"}, nil},
		"object that is gone":   {Object{APIVersion: "v1", Kind: "Pod", Name: "missing"}, "", []string{"missing"}, []string{`query: cannot get pods in namespace "shop": `}},
		"object of another UID": {Object{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "x"}, "", []string{"a"}, []string{"not found"}},
		"unknown kind":          {Object{APIVersion: "v1", Kind: "Thing", Name: "a"}, "", []string{"a"}, []string{`query: kind "Thing" of "v1": `}},
		"no permission to get":  {Object{APIVersion: "v1", Kind: "Pod", Name: "checkout-1-a"}, "get replicasets", []string{"checkout-1-a", "checkout-1"}, []string{`query: missing permission to get replicasets.apps in namespace "shop": `}},
	} {
		t.Run(name, func(t *testing.T) {
			client, mapper := metadataServer(t, deployment, rs, old, pod, oldPod, claim, node, static, mirrored, mirror, orphan, ownedByCustom, a, b)
			client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if tt.deny == action.GetVerb()+" "+action.GetResource().Resource {
					return true, nil, apierrors.NewForbidden(action.GetResource().GroupResource(), "", errors.New("user dev"))
				}
				return false, nil, nil
			})

			object := tt.object
			if !object.ClusterScoped {
				object.Namespace = "shop"
			}
			if tt.deny == "" {
				roots, errs := (&Owners{Metadata: client, Mapper: mapper}).Roots(t.Context(), "shop")
				assert.Empty(t, errs)
				for name, want := range map[string]string{
					"checkout-1-a": "checkout", "orphan": "gone", "of-thing": "thing", "static-n1": "n1", "no-such-pod": "",
				} {
					root, ok := roots.Of(series.Reference{Kind: "Pod", Namespace: "shop", Name: name, UID: "u"})
					assert.Equal(t, want, root.Name)
					assert.Equal(t, want != "", ok)
				}
				var dependents []string
				for _, o := range roots.Dependents(Object{Kind: "Deployment", Namespace: "shop", Name: "checkout"}) {
					dependents = append(dependents, o.Name)
				}
				assert.ElementsMatch(t, []string{"checkout-0", "checkout-1", "checkout-0-a", "checkout-1-a", "data"}, dependents)
				cycle, _ := roots.Of(series.Reference{UID: "uid-a"})
				assert.Equal(t, "Pod", cycle.Kind)
			}
			if tt.deny == "get replicasets" {
				client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("user dev"))
				})
				roots, errs := (&Owners{Metadata: client, Mapper: mapper}).Roots(t.Context(), "shop")
				require.Len(t, errs, 1)
				require.ErrorContains(t, errs[0], `query: missing permission to list pods in namespace "shop": `)
				assert.Len(t, roots.Dependents(Object{Kind: "Deployment", Namespace: "shop", Name: "checkout"}), 2)
			}
			objects, errs := (&Owners{Metadata: client, Mapper: mapper}).Follow(t.Context(), object)
			var found []string
			for _, o := range objects {
				if strings.HasPrefix(string(o.UID), "hash-") {
					assert.Equal(t, Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "mirror-n2", UID: o.UID}, o)
					found = append(found, string(o.UID))
					continue
				}
				found = append(found, o.Name)
				assert.Equal(t, o.Kind == "Node", o.ClusterScoped)
				assert.Equal(t, o.Kind == "Node", o.Namespace == "")
				if len(objects) > 1 {
					assert.Equal(t, types.UID("uid-"+o.Name), o.UID)
				}
			}
			assert.Equal(t, tt.want, found)
			require.Len(t, errs, len(tt.errs))
			for i, err := range errs {
				require.ErrorContains(t, err, tt.errs[i])
			}
		})
	}
}
