package apigroup

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// renamedFields maps JSON names in events.k8s.io/v1 to those in core/v1.
var renamedFields = map[string]string{
	"regarding":                "involvedObject",
	"note":                     "message",
	"reportingController":      "reportingComponent",
	"deprecatedSource":         "source",
	"deprecatedFirstTimestamp": "firstTimestamp",
	"deprecatedLastTimestamp":  "lastTimestamp",
	"deprecatedCount":          "count",
}

func FuzzConversion(f *testing.F) {
	for _, data := range seeds() {
		f.Add(data)
	}
	f.Add([]byte(nil))
	f.Add([]byte("odd length, so without TypeMeta"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var event eventsv1.Event
		fill(data, &event)
		event.TypeMeta = typeMetaFor(data, "events.k8s.io/v1")
		eventBefore := event.DeepCopy()
		toCore := ToCore(&event)
		assert.Equal(t, typeMetaFor(data, "v1"), toCore.TypeMeta)
		assert.Equal(t, rename(toJSON(t, &event)), toJSON(t, toCore))
		assert.Equal(t, eventBefore, FromCore(toCore), "round trip")
		modify(&toCore.ObjectMeta, toCore.Related)
		assert.Equal(t, eventBefore, &event, "shared memory")

		var core corev1.Event
		fill(data, &core)
		core.TypeMeta = typeMetaFor(data, "v1")
		coreBefore := core.DeepCopy()
		fromCore := FromCore(&core)
		assert.Equal(t, typeMetaFor(data, "events.k8s.io/v1"), fromCore.TypeMeta)
		assert.Equal(t, toJSON(t, &core), rename(toJSON(t, fromCore)))
		assert.Equal(t, coreBefore, ToCore(fromCore), "round trip")
		modify(&fromCore.ObjectMeta, fromCore.Related)
		assert.Equal(t, coreBefore, &core, "shared memory")
	})
}

func TestConversionOfNil(t *testing.T) {
	assert.Nil(t, ToCore(nil))
	assert.Nil(t, FromCore(nil))
}

func TestSeedsSetEveryField(t *testing.T) {
	want := map[string]bool{
		"metadata": true, "eventTime": true, "series": true, "reportingInstance": true,
		"action": true, "reason": true, "related": true, "type": true,
	}
	for name := range renamedFields {
		want[name] = true
	}
	got := map[string]bool{}
	for _, data := range seeds() {
		var event eventsv1.Event
		fill(data, &event)
		for name := range toJSON(t, &event) {
			got[name] = true
		}
	}
	assert.Equal(t, want, got)
}

// seeds returns the inputs of the fuzz target in a normal test run.
func seeds() (all [][]byte) {
	for i := range uint64(64) {
		all = append(all, binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15))
	}
	return all
}

func fill(data []byte, object any) {
	filler := randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 3).MaxDepth(8)
	filler.Funcs(func(fields *metav1.FieldsV1, _ randfill.Continue) { // must be JSON
		fields.Raw = []byte(`{"f:note":{}}`)
	})
	filler.Fill(object)
}

// typeMetaFor returns an empty TypeMeta, as typed clients do, for data of odd length.
func typeMetaFor(data []byte, apiVersion string) metav1.TypeMeta {
	if len(data)%2 == 1 {
		return metav1.TypeMeta{}
	}
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: "Event"}
}

// toJSON returns the JSON fields of an object without its type. It removes empty
// fields, because the groups differ in which ones they omit.
func toJSON(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(data, &fields))
	delete(fields, "apiVersion")
	delete(fields, "kind")
	removeEmpty(fields)
	return fields
}

// removeEmpty removes empty fields recursively.
func removeEmpty(fields map[string]any) {
	for name, value := range fields {
		object, ok := value.(map[string]any)
		if ok {
			removeEmpty(object)
		}
		if ok && len(object) == 0 || value == nil || value == "" || value == 0.0 {
			delete(fields, name)
		}
	}
}

// rename renames the fields of events.k8s.io/v1 to those of core/v1.
func rename(fields map[string]any) map[string]any {
	for name, coreName := range renamedFields {
		if value, ok := fields[name]; ok {
			fields[coreName] = value
			delete(fields, name)
		}
	}
	return fields
}

// modify changes the memory that an Event points to.
func modify(meta *metav1.ObjectMeta, related *corev1.ObjectReference) {
	for key := range meta.Annotations {
		meta.Annotations[key] += "!"
	}
	for i := range meta.OwnerReferences {
		meta.OwnerReferences[i].Name += "!"
	}
	if related != nil {
		related.Name += "!"
	}
}

var (
	first = metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 999999000, time.UTC))
	last  = metav1.NewMicroTime(first.Add(100 * time.Second))
)

// newSeries returns an Event with 57 occurrences.
func newSeries() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "ns", Name: "x"},
		EventTime:           first,
		ReportingController: "example.com/x",
		ReportingInstance:   "node-1",
		Series:              &eventsv1.EventSeries{Count: 57, LastObservedTime: last},
	}
}

func TestToCoreWithDeprecatedFields(t *testing.T) {
	setDeprecatedFields := func(e *eventsv1.Event) {
		e.DeprecatedSource.Component = "old"
		e.DeprecatedCount = 3
		e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp = metav1.Unix(1, 0), metav1.Unix(2, 0)
	}
	firstSecond, lastSecond := metav1.NewTime(first.Truncate(time.Second)), metav1.NewTime(last.Truncate(time.Second))
	for name, test := range map[string]struct {
		change      func(*eventsv1.Event)
		component   string
		host        string
		first, last metav1.Time
		count       int32
	}{
		"series":           {func(*eventsv1.Event) {}, "example.com/x", "node-1", firstSecond, lastSecond, 57},
		"singleton":        {func(e *eventsv1.Event) { e.Series = nil }, "example.com/x", "node-1", firstSecond, firstSecond, 1},
		"default instance": {func(e *eventsv1.Event) { e.ReportingInstance = "example.com/x-node-1" }, "example.com/x", "", firstSecond, lastSecond, 57},
		"other host":       {func(e *eventsv1.Event) { e.DeprecatedSource.Host = "node-2" }, "example.com/x", "node-2", firstSecond, lastSecond, 57},
		"updated series":   {setDeprecatedFields, "old", "", firstSecond, lastSecond, 57},
		"legacy event": {func(e *eventsv1.Event) {
			e.EventTime, e.Series = metav1.MicroTime{}, nil
			setDeprecatedFields(e)
		}, "old", "", metav1.Unix(1, 0), metav1.Unix(2, 0), 3},
	} {
		t.Run(name, func(t *testing.T) {
			event := newSeries()
			test.change(event)
			before := event.DeepCopy()
			want := ToCore(event)
			want.Source, want.Count = corev1.EventSource{Component: test.component, Host: test.host}, test.count
			want.FirstTimestamp, want.LastTimestamp = test.first, test.last
			assert.Equal(t, want, ToCoreWithDeprecatedFields(event))
			assert.Equal(t, before, event)
		})
	}
}

func TestAddCoreFields(t *testing.T) {
	const (
		series      = `"series":{"count":57,"lastObservedTime":"2026-01-02T03:05:45.999999Z"}`
		onlyCount   = `"series":{"count":9}`
		onlyTime    = `"series":{"lastObservedTime":"2026-01-02T03:05:45.999999Z"}`
		annotations = `"metadata":{"annotations":{"a":"1","b":null}}`
		own         = `"count":3,"source":null`

		count          = `"count":57`
		firstTimestamp = `"firstTimestamp":"2026-01-02T03:04:05Z"`
		lastTimestamp  = `"lastTimestamp":"2026-01-02T03:05:45Z"`
	)
	object := func(fields ...string) string { return "{" + strings.Join(fields, ",") + "}" }
	for name, test := range map[string]struct {
		event       *eventsv1.Event
		patch, want string
	}{
		"series": {newSeries(), object(series, annotations), object(series, annotations, count, firstTimestamp, lastTimestamp)},
		"event without eventTime and reportingController": {&eventsv1.Event{}, object(series), object(series, count, lastTimestamp)},

		"empty patch":           {newSeries(), `{}`, `{}`},
		"no series":             {newSeries(), object(annotations), object(annotations)},
		"null series":           {newSeries(), `{"series":null}`, `{"series":null}`},
		"only count":            {newSeries(), object(onlyCount), object(onlyCount, `"count":9`, firstTimestamp)},
		"only lastObservedTime": {newSeries(), object(onlyTime), object(onlyTime, lastTimestamp, firstTimestamp)},
		"own deprecated fields": {newSeries(), object(series, own), object(series, own, lastTimestamp, firstTimestamp)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := addCoreFields(test.event, []byte(test.patch))
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(got))
		})
	}
	for _, patch := range []string{``, `[{"op":"remove","path":"/a"}]`, `{"series":7}`, `{"series":{},"metadata":7}`, `{"series":{"count":9999999999}}`} {
		_, err := addCoreFields(newSeries(), []byte(patch))
		require.ErrorContains(t, err, "parse merge patch: ", patch)
	}
}

// Where the server permits that, Events have the form of the legacy recorder's. The sink puts the
// first time back.
func TestStoredForm(t *testing.T) {
	for name, test := range map[string]struct {
		namespace, regarding string
		legacy               bool
	}{
		"namespaced":                {"ns", "ns", true},
		"cluster-scoped":            {"default", "", true},
		"cluster-scoped, elsewhere": {"kube-system", "", false},
		"another namespace":         {"ns", "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			event := newSeries()
			event.Namespace, event.Regarding.Namespace, event.Annotations = test.namespace, test.regarding, map[string]string{"a": "1"}
			before := event.DeepCopy()
			patch := `{"metadata":{"resourceVersion":"7","annotations":{"b":null}},"series":{"count":57}}`
			want := `{"count":57,"firstTimestamp":"2026-01-02T03:04:05Z",` + patch[1:]
			core := toStored(event)
			if test.legacy {
				assert.True(t, core.EventTime.IsZero())
				assert.Equal(t, map[string]string{"a": "1", "eventseries.dev/event-time": "2026-01-02T03:04:05.999999Z"}, core.Annotations)
				want = strings.Replace(want, `"b":null`, `"b":null,"eventseries.dev/event-time":"2026-01-02T03:04:05.999999Z"`, 1)
				want = `{"eventTime":null,` + want[1:]
			} else {
				assert.Equal(t, first, core.EventTime)
				assert.Equal(t, event.Annotations, core.Annotations)
			}
			stored := fromStored(core)
			assert.True(t, first.Equal(&stored.EventTime))
			assert.Equal(t, core.Annotations, stored.Annotations, "also what a recorder recognizes the Event by")
			got, err := addCoreFields(event, []byte(patch))
			require.NoError(t, err)
			assert.JSONEq(t, want, string(got))
			assert.Equal(t, before, event)
		})
	}
	legacy := &eventsv1.Event{DeprecatedCount: 7}
	assert.Equal(t, ToCore(legacy), toStored(legacy))
	assert.Equal(t, legacy, fromStored(ToCore(legacy)))
}

// The latest note of a series is the message, which only core/v1 permits to change.
func TestMessageIsTheLatestNote(t *testing.T) {
	const combined = "(combined from similar events): "
	long, longer := strings.Repeat("n", 1024), strings.Repeat("n", 1025)
	for name, test := range map[string]struct {
		note, last, want string
	}{
		"one note":               {"1", "", "1"},
		"latest note":            {"1", "30", "30"},
		"combined":               {combined + "11", "30", combined + "30"},
		"combined, long":         {combined + "11", long, combined + long},
		"long":                   {long[:1024-len("…")] + "…", longer, longer},
		"combined and restarted": {combined + "11", combined + "30", combined + "30"},
	} {
		t.Run(name, func(t *testing.T) {
			event := newSeries()
			event.Note, event.Regarding.Namespace = test.note, "ns"
			patch := `{"series":{"count":57}}`
			if test.last != "" {
				event.Annotations = map[string]string{"eventseries.dev/last-note": test.last}
				patch = `{"series":{"count":57},"metadata":{"annotations":{"eventseries.dev/last-note":"` + test.last + `"}}}`
			}
			assert.Equal(t, test.want, ToCoreWithDeprecatedFields(event).Message)
			assert.Equal(t, test.note, ToCore(event).Message)
			patched, err := addCoreFields(event, []byte(patch))
			require.NoError(t, err)
			var got struct{ Message *string }
			require.NoError(t, json.Unmarshal(patched, &got))
			if test.last == "" {
				assert.Nil(t, got.Message, "neither says what the latest note is")
				return
			}
			require.NotNil(t, got.Message)
			assert.Equal(t, test.want, *got.Message)
			// The Event can have been created through events.k8s.io, with the beginning of the note.
			patched, err = addCoreFields(event, []byte(`{"series":{"count":57}}`))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(patched, &got))
			assert.Equal(t, test.want, *got.Message)
		})
	}
	event := newSeries() // which keeps its eventTime, so the server limits the message
	event.Note, event.Annotations = "1", map[string]string{"eventseries.dev/last-note": strings.Repeat("é", 600)}
	assert.Equal(t, strings.Repeat("é", 510)+"…", toStored(event).Message)
	patched, err := addCoreFields(event, []byte(`{"series":{"count":57}}`))
	require.NoError(t, err)
	assert.Contains(t, string(patched), `"message":"`+strings.Repeat("é", 510)+`…"`)

	removed := `{"series":{"count":57},"metadata":{"annotations":{"eventseries.dev/last-note":null}}}`
	event = newSeries()
	patched, err = addCoreFields(event, []byte(removed))
	require.NoError(t, err)
	assert.NotContains(t, string(patched), `"message"`, "the note is not known")
	event.Note = "1"
	patched, err = addCoreFields(event, []byte(removed))
	require.NoError(t, err)
	assert.Contains(t, string(patched), `"message":"1"`, "the first note is the latest again")
}
