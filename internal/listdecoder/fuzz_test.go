package listdecoder

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzDecode compares the decoder with the generated Unmarshal and series.FromEvent: what
// Unmarshal accepts and encodes again has the same series, or none. In other input, both
// ignore different kinds of nonsense, but no value differs.
func FuzzDecode(f *testing.F) {
	events := variousEvents()
	for i := range events {
		data, err := events[i].Marshal()
		require.NoError(f, err)
		f.Add(data)
		core := toCore(&events[i])
		data, err = core.Marshal()
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var event eventsv1.Event
		eventErr := event.Unmarshal(data)
		encoded, err := event.Marshal()
		require.NoError(t, err)
		compare(t, eventsv1.SchemeGroupVersion, data, encoded, &event, eventErr)

		var core corev1.Event
		coreErr := core.Unmarshal(data)
		encoded, err = core.Marshal()
		require.NoError(t, err)
		event = fromCore(&core)
		compare(t, corev1.SchemeGroupVersion, data, encoded, &event, coreErr)
	})
}

// fromCore reverses toCore, as far as the decoder does.
func fromCore(c *corev1.Event) eventsv1.Event {
	e := eventsv1.Event{
		ObjectMeta: c.ObjectMeta, EventTime: c.EventTime, ReportingController: c.ReportingController, ReportingInstance: c.ReportingInstance,
		Action: c.Action, Reason: c.Reason, Regarding: c.InvolvedObject, Related: c.Related, Note: c.Message, Type: c.Type, DeprecatedCount: c.Count,
	}
	if c.Series != nil {
		e.Series = &eventsv1.EventSeries{Count: c.Series.Count, LastObservedTime: c.Series.LastObservedTime}
	}
	return e
}

func compare(t *testing.T, gv schema.GroupVersion, data, encoded []byte, want *eventsv1.Event, wantErr error) {
	t.Helper()
	d := decoder{fields: layouts[gv], words: make(words)}
	if got, err := d.decode(data); err == nil && wantErr == nil {
		equalReceived(t, []received{receivedFrom(want)}, []received{receivedFrom(got)})
	}
	if wantErr == nil {
		got, err := d.decode(encoded) // with what remains of the one before
		require.NoError(t, err)
		equalReceived(t, []received{receivedFrom(want)}, []received{receivedFrom(got)})
	}
}

// FuzzList compares lists with what the generated Unmarshal makes of them.
func FuzzList(f *testing.F) {
	begin := beginning(eventsv1.SchemeGroupVersion)
	events := variousEvents()
	list := eventsv1.EventList{Items: events}
	list.Continue = "more"
	data, err := list.Marshal()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var list eventsv1.EventList
		wantErr := list.Unmarshal(raw)
		got, meta, ok, err := receiveFrom(bytes.NewReader(protowire.AppendBytes(begin[:len(begin):len(begin)], raw)), eventsv1.SchemeGroupVersion)
		assert.True(t, ok)
		if err != nil || wantErr != nil {
			return
		}
		assert.Equal(t, list.ListMeta, meta)
		var want []received
		for i := range list.Items {
			want = append(want, receivedFrom(&list.Items[i]))
		}
		equalReceived(t, want, got)
	})
}
