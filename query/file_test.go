package query

import (
	"compress/gzip"
	"encoding/json"
	"errors"
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
		"an empty array":             {"[]\n", ""},
		"an array, as of jq .items":  {encode(t, []corev1.Event{typed(core[0]), typed(core[1])}), "a b"},
		"without types":              {encode(t, core) + "\n" + encode(t, []eventsv1.Event{*a, *b}), "a b a b"},
		"a list of lists":            {`{"kind": "List", "items": [` + list + `, [], {"kind": "List", "items": null}]}`, "a b"},
		"pods without types":         {`{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "x"}}]}` + list, "a b"},
		"a watch": {`{"type":"ADDED","object":` + encode(t, typed(core[0])) + "}\n" + `{"type":"DELETED","object":` + encode(t, ours) + "}\n" +
			`{"type":"BOOKMARK","object":{"kind":"Event","apiVersion":"v1","metadata":{"resourceVersion":"9"}}}` + "\n" +
			`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410}}`, "a a"},
		"a watch in YAML":           {"object:\n  apiVersion: v1\n  kind: Event\n  metadata: {name: a, namespace: shop}\ntype: ADDED\n---\nobject:\n  kind: Event\ntype: BOOKMARK\n", "a"},
		"kubectl cluster-info dump": {list + "\n==== START logs for container c of pod shop/p ====\n" + list + "\n{\"bad\n==== END logs for container c of pod shop/p ====\n" + list, "a b a b"},
		"the same in YAML":          {asYAML + "---\n" + asYAML + "==== START logs for container c of pod shop/p ====\nx: y: z\nlast==== END logs for container c of pod shop/p ====\n---\n" + asYAML, "a b a b a b"},
		"an old one":                {`{"Items": [{"name": "a", "namespace": "shop", "InvolvedObject": {"Kind": "Pod"}, "Count": 3}, {"name": "b", "InvolvedObject": {}, "Count": 3}]}`, "a b"},
		"pods of an old one":        {`{"Items": [{"name": "a", "Spec": {}}]}` + list, "a b"},
		"text before and after":     {"Warning: x\n" + list + "\nE1103 done\n", "a b"},
		"gzip":                      {compressed(t, compressed(t, list)), "a b"},
		"a byte order mark":         {"\ufeff" + list, "a b"},
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
	audit := `{"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": [{"auditID": "x"}, {"auditID": "y"}]}`
	event := encode(t, typed(core[0]))
	for file, want := range map[string]string{
		"":                     "query: no Events, but nothing at all: want the output of kubectl get events -o json or -o yaml",
		"LAST SEEN   TYPE\n5m": "no Events, but neither objects of JSON nor of YAML",
		audit:                  "no Events, but 2 audit.k8s.io/v1 Event: want",
		`{"kind": "List", "items": [{"kind": "Pod", "apiVersion": "v1"}, {"x": 1}]}`: "no Events, but 1 object without a kind, 1 v1 Pod: want",
		`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1"}}`:              "no Events, but 1 v1 Status",
		"{":                         "query: read events: unexpected EOF: want",
		"not: [closed":              "query: read events: ",
		"\xff\xfe{\x00":             "query: read events: no text in UTF-8 (text/plain; charset=utf-16le)",
		compressed(t, "PK\x03\x04"): "no text in UTF-8 (application/zip)",
		compressed(t, list)[:9]:     "unexpected EOF",
		event + "\n" + event[:90]:   "a: query: read events: unexpected EOF",
		compressed(t, event)[:200]:  "unexpected EOF",
		`[{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"}, "count": "y"}, ` + event + `, {"apiVersion": "v1", "kind": "Event", "count": 1.5}]`: "a: query: read events: event /x: json: cannot unmarshal string into Go struct field Event.count of type int32",
	} {
		events, err := ReadEvents(strings.NewReader(file))
		require.Error(t, err, file)
		got := err.Error()
		for i := range events {
			got = events[i].Name + ": " + got
		}
		assert.Contains(t, got, want)
		assert.Equal(t, strings.Contains(want, "no Events"), errors.Is(err, ErrNoEvents))
	}
}

func compressed(t *testing.T, s string) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(s))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
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
	// Those without a name are all different.
	nameless := newEvent(named("shop", ""))
	twice := NewFileReader([]eventsv1.Event{*nameless, *nameless, *newEvent(named("", ""), about("Pod", "other", "x", "")), *nameless}, Options{Clock: atTen})
	assert.Len(t, names(t, twice.List(t.Context(), Query{})), 4)
	assert.Len(t, names(t, twice.List(t.Context(), Query{Namespaces: []string{"shop"}})), 3)
	assert.Len(t, names(t, twice.List(t.Context(), Query{Namespaces: []string{"other"}})), 1)
	// Of the same version, the last one counts, as in a watch.
	later := NewFileReader([]eventsv1.Event{*newEvent(named("shop", "a"), recurred(2, 0)), *newEvent(named("shop", "a"), recurred(3, 0))}, Options{Clock: atTen})
	for item, err := range later.List(t.Context(), Query{}) {
		require.NoError(t, err)
		assert.EqualValues(t, 3, item.Count)
	}
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
