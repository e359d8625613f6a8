package output

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
)

func list(n int) iter.Seq2[*query.Item, error] {
	now := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	events := []*eventsv1.Event{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: map[string]string{"eventseries.dev/state": "Ongoing"}},
			EventTime:  metav1.NewMicroTime(now.Add(-10 * time.Second)), Type: "Warning", Reason: "BackOff", Note: "first",
			Series:    &eventsv1.EventSeries{Count: 11, LastObservedTime: metav1.NewMicroTime(now)},
			Regarding: corev1.ObjectReference{Kind: "Pod", Name: "web-0"},
		},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}, Type: "Normal", Reason: "Pulled", DeprecatedSource: corev1.EventSource{Component: "kubelet"}},
	}
	return func(yield func(*query.Item, error) bool) {
		for _, e := range events[:n] {
			if !yield(query.FromEvent(e, now), nil) {
				return
			}
		}
	}
}

func printed(t *testing.T, format string, n int) string {
	t.Helper()
	p, err := New(format, Options{})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, p.PrintList(&b, list(n)))
	return b.String()
}

func TestFormats(t *testing.T) {
	columns := filepath.Join(t.TempDir(), "columns")
	require.NoError(t, os.WriteFile(columns, []byte("NAME  REASON\n.metadata.name {.reason}\n"), 0o600))
	for format, want := range map[string]string{
		"name":                       "event.events.k8s.io/a\nevent.events.k8s.io/b\n",
		"jsonpath={.items[*].state}": "Ongoing Singleton",
		"jsonpath={.items[0].rate}":  "1",
		"jsonpath-as-json={.items[1].reportingController}":                              "[\n    \"kubelet\"\n]\n",
		"go-template={{range .items}}{{.count}},{{end}}":                                "11,1,",
		"custom-columns=N:.metadata.name,OBJECT:regarding.name,L:{.metadata.labels.no}": "N   OBJECT   L\na   web-0    <none>\nb   <none>   <none>\n",
		"custom-columns-file=" + columns:                                                "NAME   REASON\na      BackOff\nb      Pulled\n",
	} {
		assert.Equal(t, want, printed(t, format, 2), format)
	}
}

// TestLists requires valid lists, and the same objects in both formats.
func TestLists(t *testing.T) {
	for n := range 3 {
		var fromJSON, fromYAML map[string]any
		require.NoError(t, json.Unmarshal([]byte(printed(t, "json", n)), &fromJSON))
		require.NoError(t, yaml.Unmarshal([]byte(printed(t, "yaml", n)), &fromYAML))
		assert.Equal(t, fromJSON, fromYAML)
		assert.Len(t, fromJSON["items"], n)
		assert.Equal(t, "SeriesList", fromJSON["kind"])
	}
}

// TestControlCharacters requires that no format prints a character that controls a terminal, and that
// JSON and YAML keep the value.
func TestControlCharacters(t *testing.T) {
	const note = "a\x1b[31m\x7f\u009b31m\u202e\u2066\u200b\U000e0041 é 👩\u200d🚀\rspoofed\v\f\u2028\n\\u202e \\x7f\nb"
	item := query.FromEvent(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, Note: note}, time.Unix(0, 0))
	items := func(yield func(*query.Item, error) bool) { yield(item, nil) }
	for _, format := range []string{
		"json", "yaml", "kyaml", "jsonpath={.items[*].note}{.note}", "jsonpath-as-json={.items[*].note}{.note}",
		"go-template={{range .items}}{{.note}}{{end}}{{.note}}{{.object.note}}", "custom-columns=N:.note", "jsonpath={.object.note}",
	} {
		p, err := New(format, Options{})
		require.NoError(t, err)
		for name, write := range map[string]func(w io.Writer) error{
			"list":   func(w io.Writer) error { return p.PrintList(w, items) },
			"item":   func(w io.Writer) error { return p.PrintItem(w, item) },
			"change": func(w io.Writer) error { return p.PrintChange(w, "ADDED", item) },
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Errorf("%s of %s: %v", name, format, err)
				continue
			}
			controls := func(r rune) bool { return !text.IsPrintable(r) || strings.ContainsRune("\r\v\f\u2028", r) }
			assert.False(t, strings.ContainsFunc(b.String(), controls), "%s of %s: %q", name, format, b.String())
			if name == "list" && (format == "json" || format == "yaml" || format == "kyaml") {
				var list struct{ Items []struct{ Note string } }
				parse := json.Unmarshal
				if format != "json" {
					parse = func(data []byte, value any) error { return yaml.Unmarshal(data, value) }
				}
				require.NoError(t, parse(b.Bytes(), &list), format)
				assert.Equal(t, note, list.Items[0].Note, format)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for format, want := range map[string]string{
		"xml":                               `output format "xml": want one of wide, json, yaml`,
		"json=.items":                       `output format "json=.items": want one of wide, json, yaml`,
		"jsonpath":                          `output format "jsonpath": want jsonpath=…`,
		"jsonpath={.x":                      "unclosed action",
		"custom-columns=NAME":               `custom column "NAME": want HEADER:JSONPATH`,
		"custom-columns=N:}{":               `JSONPath "}{": want an expression such as .metadata.name`,
		"custom-columns-file=/no/such/file": "no such file",
	} {
		_, err := New(format, Options{Others: []string{"wide"}})
		assert.ErrorContains(t, err, want, format)
	}
}
