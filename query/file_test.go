package query

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/apigroup"
	"github.com/eventseries/eventseries/series"
)

// encode returns objects as a program writes them. Those of a typed list have no type.
func encode(t *testing.T, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	return string(data)
}

func TestReadEvents(t *testing.T) {
	a, b := newEvent(named("shop", "a")), newEvent(named("shop", "b"), legacy(3, 0, 0))
	core := []corev1.Event{*apigroup.ToCore(a), *apigroup.ToCore(b)}
	typed := func(e corev1.Event) corev1.Event {
		e.APIVersion, e.Kind = "v1", "Event"
		return e
	}
	ours := *a
	ours.SetGroupVersionKind(eventKind)
	list := encode(t, corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: core})
	const asYAML = `apiVersion: v1
items:
- count: 1
  involvedObject: {kind: Pod, name: checkout-0, namespace: shop}
  message: |-
    two
    lines
  metadata: {name: a, namespace: shop}
- count: 3
  firstTimestamp: "2026-01-02T12:00:00Z"
  metadata: {name: b, namespace: shop}
kind: EventList
metadata: {resourceVersion: "7"}
`
	for name, test := range map[string]struct {
		file string
		want string
	}{
		"kubectl get events -o json": {`{"apiVersion": "v1", "kind": "List", "items": [` + encode(t, typed(core[0])) + "," + encode(t, typed(core[1])) + `]}`, "a b"},
		"the API server":             {list, "a b"},
		"must-gather":                {"---\n" + asYAML, "a b"},
		"several documents":          {asYAML + "---\n" + asYAML, "a b a b"},
		"events.k8s.io":              {encode(t, eventsv1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "EventList"}, Items: []eventsv1.Event{*a, *b}}), "a b"},
		"one event":                  {encode(t, ours) + "\n" + encode(t, typed(core[1])), "a b"},
		"other objects":              {`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod"}, ` + encode(t, ours) + `]}`, "a"},
		"no events":                  {`{"apiVersion": "v1", "kind": "List", "items": []}`, ""},
		"empty":                      {"", ""},
	} {
		events, err := ReadEvents(strings.NewReader(test.file))
		require.NoError(t, err, name)
		var names []string
		for i := range events {
			names = append(names, events[i].Name)
			if events[i].Name == "b" {
				assert.EqualValues(t, 3, events[i].DeprecatedCount, name)
			}
		}
		assert.Equal(t, test.want, strings.Join(names, " "), name)
	}
	for _, file := range []string{"{", "not: [closed", `{"apiVersion": "v1", "kind": "Event", "count": "x"}`, "just text"} {
		_, err := ReadEvents(strings.NewReader(file))
		assert.ErrorContains(t, err, "query: read events: ", file)
	}
}

// TestFileReader requires what the API server would return.
func TestFileReader(t *testing.T) {
	s := &apiServer{}
	server := NewReader(s.start(t), Options{Clock: atTen})
	for _, e := range []*eventsv1.Event{
		newEvent(named("shop", "a"), reported("kubelet", "", "Failed")),
		newEvent(named("shop", "b"), legacy(30, 0, 0)),
		newEvent(named("other", "c"), about("Node", "", "n1", "n1"), labeled("Ongoing"), recurred(3, 0)),
	} {
		s.Put(e)
	}
	old := s.Events()[1]
	old.ResourceVersion, old.Note = "0", "an earlier version"
	file := NewFileReader(append(s.Events(), old), Options{Clock: atTen})
	for _, q := range []Query{
		{}, {Namespaces: []string{"shop"}}, {Reasons: []string{"Failed"}}, {Note: "SUCH"}, {Note: "x"}, {Controllers: []string{"kubelet"}}, {States: []series.State{series.Ongoing}},
		{FieldSelector: "involvedObject.kind!=Pod"}, {LabelSelector: "eventseries.dev/state"},
		{Objects: []Object{{Kind: "Pod", Namespace: "shop", Name: "checkout-0"}}, Role: Regarding}, {Objects: []Object{{Kind: "Node", Name: "n1", ClusterScoped: true}}},
	} {
		assert.Equal(t, names(t, server.List(t.Context(), q)), names(t, file.List(t.Context(), q)), "%+v", q)
	}
	assert.Equal(t, []string{"b"}, names(t, file.List(t.Context(), Query{FieldSelector: "source=kubelet"})))
	item, err := file.Get(t.Context(), "shop", "b")
	require.NoError(t, err)
	_, err = file.Chain(t.Context(), item)
	require.NoError(t, err)
	require.ErrorContains(t, errorOf(t, file.List(t.Context(), Query{FieldSelector: "related.name=x"})), "field label not supported: related.name")
	for _, err := range file.Watch(t.Context(), Query{}) {
		if err != nil {
			require.ErrorContains(t, err, "cannot watch events")
		}
	}
}
