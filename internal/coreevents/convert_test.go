package coreevents

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

// twins are the fields that have other names in core/v1, as in JSON.
var twins = map[string]string{
	"regarding":                "involvedObject",
	"note":                     "message",
	"reportingController":      "reportingComponent",
	"deprecatedSource":         "source",
	"deprecatedFirstTimestamp": "firstTimestamp",
	"deprecatedLastTimestamp":  "lastTimestamp",
	"deprecatedCount":          "count",
}

// FuzzToCore goes from events.k8s.io/v1 to core/v1 and back.
func FuzzToCore(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var event eventsv1.Event
		fill(data, &event)
		event.TypeMeta = typed(data, "events.k8s.io/v1")
		before := event.DeepCopy()
		core := ToCore(&event)
		assert.Equal(t, typed(data, "v1"), core.TypeMeta)
		assert.Equal(t, renamed(asJSON(t, &event)), asJSON(t, core))
		assert.Equal(t, before, FromCore(core), "there and back")
		scribble(&core.ObjectMeta, core.Related)
		assert.Equal(t, before, &event, "no memory is shared")
	})
}

// FuzzFromCore goes from core/v1 to events.k8s.io/v1 and back.
func FuzzFromCore(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var core corev1.Event
		fill(data, &core)
		core.TypeMeta = typed(data, "v1")
		before := core.DeepCopy()
		event := FromCore(&core)
		assert.Equal(t, typed(data, "events.k8s.io/v1"), event.TypeMeta)
		assert.Equal(t, asJSON(t, &core), renamed(asJSON(t, event)))
		assert.Equal(t, before, ToCore(event), "there and back")
		scribble(&event.ObjectMeta, event.Related)
		assert.Equal(t, before, &core, "no memory is shared")
	})
}

// An Event that was born old tells nothing in the fields of a new one.
func TestEventsThatWereBornOld(t *testing.T) {
	old := &corev1.Event{
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-1"},
		FirstTimestamp: metav1.Unix(1, 0),
		LastTimestamp:  metav1.Unix(2, 0),
		Count:          7,
	}
	assert.Equal(t, &eventsv1.Event{
		DeprecatedSource:         old.Source,
		DeprecatedFirstTimestamp: old.FirstTimestamp,
		DeprecatedLastTimestamp:  old.LastTimestamp,
		DeprecatedCount:          7,
	}, FromCore(old))
}

func TestNoEvent(t *testing.T) {
	assert.Nil(t, ToCore(nil))
	assert.Nil(t, FromCore(nil))
}

// seeds are what Events are made of whenever tests run.
func seeds() (all [][]byte) {
	for i := range uint64(64) {
		all = append(all, binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15))
	}
	return all
}

func seed(f *testing.F) {
	f.Helper()
	for _, data := range seeds() {
		f.Add(data)
	}
	f.Add([]byte(nil))
	f.Add([]byte("one that does not say its type."))
}

// fill makes an object of bytes.
func fill(data []byte, object any) {
	filler := randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 3).MaxDepth(8)
	filler.Funcs(func(fields *metav1.FieldsV1, _ randfill.Continue) { // must be JSON
		fields.Raw = []byte(`{"f:note":{}}`)
	})
	filler.Fill(object)
}

// typed returns the type that an object says to have, if it does.
func typed(data []byte, apiVersion string) metav1.TypeMeta {
	if len(data)%2 == 1 { // as typed clients return objects
		return metav1.TypeMeta{}
	}
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: "Event"}
}

// asJSON returns an object as it is on the wire, without its type and without
// what is empty: one group omits that where the other does not.
func asJSON(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(data, &fields))
	delete(fields, "apiVersion")
	delete(fields, "kind")
	fields, _ = prune(fields).(map[string]any)
	return fields
}

// prune takes away what is empty.
func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			if field = prune(field); field == nil {
				delete(v, name)
			} else {
				v[name] = field
			}
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case float64:
		if v == 0 {
			return nil
		}
	}
	return value
}

// renamed gives fields the names that they have in core/v1.
func renamed(fields map[string]any) map[string]any {
	for name, inCore := range twins {
		if value, ok := fields[name]; ok {
			fields[inCore] = value
			delete(fields, name)
		}
	}
	return fields
}

// scribble changes what an Event points to.
func scribble(meta *metav1.ObjectMeta, related *corev1.ObjectReference) {
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

// What the fuzz targets start with must reach every field.
func TestSeedsReachEveryField(t *testing.T) {
	reached := map[string]bool{}
	for _, data := range seeds() {
		var event eventsv1.Event
		fill(data, &event)
		for name := range asJSON(t, &event) {
			reached[name] = true
		}
	}
	all := []string{"metadata", "eventTime", "series", "reportingInstance", "action", "reason", "related", "type"}
	for name := range twins {
		all = append(all, name)
	}
	for _, name := range all {
		assert.True(t, reached[name], "%s is never set", name)
	}
	assert.Len(t, reached, len(all), "a field is new")
}
