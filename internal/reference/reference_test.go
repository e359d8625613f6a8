package reference

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/eventseries/eventseries/series"
)

// widget is in no scheme.
type widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (w *widget) DeepCopyObject() runtime.Object { c := *w; return &c }

// bare has no metadata.
type bare struct{ metav1.TypeMeta }

func (b *bare) DeepCopyObject() runtime.Object { c := *b; return &c }

// value is not a pointer.
type value map[string]string

func (v value) GetObjectKind() schema.ObjectKind {
	return &metav1.TypeMeta{Kind: v["kind"], APIVersion: "v1"}
}
func (v value) DeepCopyObject() runtime.Object { return v }

// The methods of grumpyKind and grumpyName panic.
type (
	grumpyKind struct{ widget }
	grumpyName struct{ widget }
	hollow     struct{ *widget }
)

func (g *grumpyKind) GetObjectKind() schema.ObjectKind { panic("no kind today") }
func (g *grumpyName) GetName() string                  { panic("no name today") }
func (h hollow) DeepCopyObject() runtime.Object        { return h }

var (
	widgetType = metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"}
	someMeta   = metav1.ObjectMeta{Namespace: "ns", Name: "name", UID: "uid", ResourceVersion: "7"}
)

// referable are objects that client-go's reference package accepts.
func referable() map[string]runtime.Object {
	return map[string]runtime.Object{
		"typed":                    &corev1.Pod{ObjectMeta: someMeta},
		"typed, cluster-scoped":    &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		"typed, with TypeMeta":     &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: someMeta},
		"typed, with another kind": &corev1.Pod{TypeMeta: widgetType, ObjectMeta: someMeta},
		"typed, half a TypeMeta":   &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}, ObjectMeta: someMeta},
		"typed, the other half":    &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v2"}, ObjectMeta: someMeta},
		"not in the scheme":        &widget{TypeMeta: widgetType, ObjectMeta: someMeta},
		"list":                     &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}},
		"list, with TypeMeta":      &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}},
		"reference":                &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "name", UID: "uid", ResourceVersion: "7", FieldPath: "spec.containers{a}"},
		"empty reference":          &corev1.ObjectReference{},
		"partial metadata":         &metav1.PartialObjectMetadata{TypeMeta: widgetType, ObjectMeta: someMeta},
		"unstructured": &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"namespace": "ns", "name": "name", "uid": "uid", "resourceVersion": "7"},
		}},
		"unstructured list": &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "WidgetList"}},
	}
}

// A recorder knows the types of Kubernetes even if its scheme does not.
func TestReferencesAreThoseOfClientGo(t *testing.T) {
	for i, scheme := range []*runtime.Scheme{clientscheme.Scheme, runtime.NewScheme(), nil} {
		r := &Resolver{Scheme: scheme}
		for name, obj := range referable() {
			t.Run(fmt.Sprintf("%s, scheme %d", name, i), func(t *testing.T) {
				want, err := reference.GetReference(clientscheme.Scheme, obj)
				require.NoError(t, err)
				for range 2 { // the second time it is remembered
					var got series.Reference
					require.NoError(t, r.Set(&got, obj))
					assert.Equal(t, series.ReferenceOf(want), got)
				}
			})
		}
	}
}

func TestInvalidReferences(t *testing.T) {
	r := &Resolver{Scheme: clientscheme.Scheme}
	for _, tt := range []struct {
		name string
		obj  runtime.Object
		want string
	}{
		{"nil", nil, "object is nil"},
		{"nil Pod", (*corev1.Pod)(nil), "(*v1.Pod)(nil)"},
		{"nil reference", (*corev1.ObjectReference)(nil), "(*v1.ObjectReference)(nil)"},
		{"nil Unstructured", (*unstructured.Unstructured)(nil), "(*unstructured.Unstructured)(nil)"},
		{"nil partial metadata", (*metav1.PartialObjectMetadata)(nil), "(*v1.PartialObjectMetadata)(nil)"},
		{"nil list", (*corev1.PodList)(nil), "(*v1.PodList)(nil)"},
		{"nil widget", (*widget)(nil), "(*reference.widget)(nil)"},
		{"nil inside", hollow{}, "reference.hollow cannot be referenced: panic"},
		{"nil map", value(nil), "reference.value"},
		{"no pointer", value{"kind": "Value"}, "reference.value has no metadata"},
		{"not in the scheme", &widget{ObjectMeta: someMeta}, "object has no kind and is not in the scheme: *reference.widget ns/name"},
		{"empty Unstructured", &unstructured.Unstructured{}, "object has no kind and is not in the scheme"},
		{"no metadata", &bare{TypeMeta: widgetType}, "*reference.bare has no metadata"},
		{"panics when asked its kind", &grumpyKind{}, "panic: no kind today"},
		{"panics when asked its name", &grumpyName{widget{TypeMeta: widgetType}}, "panic: no name today"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ref := series.Reference{}
			err := r.Set(&ref, tt.obj)
			require.ErrorContains(t, err, tt.want)
			assert.Zero(t, ref, "half a reference is none")
		})
	}
}
