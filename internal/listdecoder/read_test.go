package listdecoder

import (
	"bufio"
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/eventseries/eventseries/series"
)

// fullEvent returns an Event in which every field is set.
func fullEvent(name string) eventsv1.Event {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)
	event := eventsv1.Event{}
	randfill.NewWithSeed(1).NilChance(0).NumElements(2, 2).MaxDepth(10).Funcs(
		func(t *metav1.MicroTime, _ randfill.Continue) { *t = metav1.NewMicroTime(begin) },
		func(t *metav1.Time, _ randfill.Continue) { *t = metav1.NewTime(begin.Truncate(time.Second)) },
	).Fill(&event)
	event.TypeMeta = metav1.TypeMeta{}
	event.Namespace, event.Name = "shop", name
	event.Labels = map[string]string{series.LabelState: "Ongoing", series.LabelRelatedUID: "u", "other": "o"}
	event.Annotations = map[string]string{series.AnnotationHeartbeat: "30m", series.AnnotationLastNote: "the latest", "example.com/caller": "c", "": ""}
	event.Series = &eventsv1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(begin.Add(time.Minute))}
	return event
}

// toCore returns the same Event in core/v1.
func toCore(e *eventsv1.Event) corev1.Event {
	core := corev1.Event{
		ObjectMeta: e.ObjectMeta, InvolvedObject: e.Regarding, Reason: e.Reason, Message: e.Note, Source: e.DeprecatedSource,
		FirstTimestamp: e.DeprecatedFirstTimestamp, LastTimestamp: e.DeprecatedLastTimestamp, Count: e.DeprecatedCount,
		Type: e.Type, EventTime: e.EventTime, Action: e.Action, Related: e.Related,
		ReportingController: e.ReportingController, ReportingInstance: e.ReportingInstance,
	}
	if e.Series != nil {
		core.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return core
}

// encode returns an object as the API server encodes it.
func encode(t *testing.T, object apiruntime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &b))
	return b.Bytes()
}

func encodeEvents(t *testing.T, items ...eventsv1.Event) []byte {
	t.Helper()
	return encode(t, &eventsv1.EventList{
		TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "EventList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, Items: items,
	})
}

func encodeCoreEvents(t *testing.T, items ...eventsv1.Event) []byte {
	t.Helper()
	list := &corev1.EventList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more"},
	}
	for i := range items {
		list.Items = append(list.Items, toCore(&items[i]))
	}
	return encode(t, list)
}

// received is an Event as far as it is decoded.
type received struct {
	Name            string
	Series          *series.Series
	DeprecatedCount int32
	Err             string
}

func receivedFrom(event *eventsv1.Event) received {
	s, err := series.FromEvent(event)
	if err != nil {
		return received{Name: event.Name, Err: err.Error()}
	}
	return received{Name: event.Name, Series: s, DeprecatedCount: event.DeprecatedCount}
}

func receiveFrom(data io.Reader, gv schema.GroupVersion) (all []received, meta metav1.ListMeta, ok bool, err error) {
	meta, ok, err = Decode(bufio.NewReader(data), gv, func(event *eventsv1.Event) { all = append(all, receivedFrom(event)) })
	return all, meta, ok, err
}

// events returns Events that differ in what they have, so that nothing of one remains in the
// next.
func variousEvents() []eventsv1.Event {
	full, singleton, related, last := fullEvent("full"), fullEvent("singleton"), fullEvent("related"), fullEvent("last")
	singleton.Series, singleton.Labels, singleton.Annotations, singleton.Related, singleton.ManagedFields = nil, nil, nil, nil, nil
	singleton.Note, singleton.ResourceVersion = "", ""
	related.Related = &corev1.ObjectReference{Name: "only this"}
	last.Regarding = corev1.ObjectReference{}
	last.DeprecatedCount = 0
	applied := fullEvent("applied")
	applied.ManagedFields[1].Operation = metav1.ManagedFieldsOperationApply
	invalid := fullEvent("invalid")
	invalid.EventTime = metav1.MicroTime{}
	return []eventsv1.Event{full, singleton, related, applied, invalid, last}
}

func TestDecode(t *testing.T) {
	events := variousEvents()
	var want []received
	for i := range events {
		want = append(want, receivedFrom(&events[i]))
	}
	require.NotNil(t, want[0].Series.Annotations)
	for gv, data := range map[schema.GroupVersion][]byte{
		eventsv1.SchemeGroupVersion: encodeEvents(t, events...),
		corev1.SchemeGroupVersion:   encodeCoreEvents(t, events...),
	} {
		for name, r := range map[string]io.Reader{"at once": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data))} {
			got, meta, ok, err := receiveFrom(r, gv)
			require.NoError(t, err, "%v, %s", gv, name)
			assert.True(t, ok)
			assert.Equal(t, metav1.ListMeta{ResourceVersion: "7", Continue: "more"}, meta)
			equalReceived(t, want, got)
		}
	}
}

// equalReceived compares times as instants: they are decoded as local times.
func equalReceived(t *testing.T, want, got []received) {
	t.Helper()
	for _, all := range [][]received{want, got} {
		for _, r := range all {
			if r.Series != nil {
				r.Series.First, r.Series.Last = r.Series.First.UTC(), r.Series.Last.UTC()
			}
		}
	}
	assert.Equal(t, want, got)
}

// Whoever gets these reads them as a whole. Decode leaves all of it.
func TestDecodeLeavesEverythingElse(t *testing.T) {
	event := fullEvent("x")
	for name, data := range map[string][]byte{
		"empty":              nil,
		"JSON":               []byte(`{"apiVersion":"events.k8s.io/v1","kind":"EventList","items":[]}`),
		"a page of a proxy":  []byte("<html>login</html>"),
		"half of the magic":  []byte("k8"),
		"an Event":           encode(t, &event),
		"a Status":           encode(t, &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure"}),
		"another group":      encodeCoreEvents(t, event),
		"a kind that begins": encode(t, &apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "EventListX"}}),
	} {
		r := bufio.NewReader(bytes.NewReader(data))
		_, ok, err := Decode(r, eventsv1.SchemeGroupVersion, func(*eventsv1.Event) { assert.Fail(t, "received", name) })
		require.NoError(t, err, name)
		assert.False(t, ok, name)
		left, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Equal(t, string(data), string(left), name)
	}
	r := bufio.NewReader(bytes.NewReader(encodeEvents(t, event)))
	_, ok, err := Decode(r, eventsv1.SchemeGroupVersion, nil)
	assert.False(t, ok || err != nil, "nobody receives")
}

// A page that breaks off anywhere is an error. The Events before are received.
func TestDecodeTruncated(t *testing.T) {
	first, second := fullEvent("first"), fullEvent("second")
	data := encodeEvents(t, first, second)
	most := 0
	for n := len(beginning(eventsv1.SchemeGroupVersion)); n < len(data)-len("\x1a\x00\x22\x00"); n++ {
		got, _, ok, err := receiveFrom(bytes.NewReader(data[:n]), eventsv1.SchemeGroupVersion)
		assert.True(t, ok)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, n)
		most = max(most, len(got))
	}
	assert.Equal(t, 1, most)
	broken := io.MultiReader(bytes.NewReader(data), iotest.ErrReader(io.ErrClosedPipe))
	_, _, _, err := receiveFrom(broken, eventsv1.SchemeGroupVersion)
	require.ErrorIs(t, err, io.ErrClosedPipe, "the end of the response is missing")
}

func TestDecodeMalformed(t *testing.T) {
	first, last := fullEvent("first"), fullEvent("last")
	encoded := func(e *eventsv1.Event) []byte { data, err := e.Marshal(); require.NoError(t, err); return data }
	raw := func(fields ...[]byte) []byte {
		return protowire.AppendBytes(beginning(eventsv1.SchemeGroupVersion), bytes.Join(fields, nil))
	}
	bytesField := func(number protowire.Number, data []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), data)
	}
	item := func(data []byte) []byte { return bytesField(listItems, data) }
	around := func(fields ...[]byte) []byte {
		return raw(append(append([][]byte{item(encoded(&first))}, fields...), item(encoded(&last)))...)
	}
	unknown := bytes.Join([][]byte{
		bytesField(100, []byte("x")),
		protowire.AppendVarint(protowire.AppendTag(nil, 101, protowire.VarintType), 1<<63),
		protowire.AppendFixed32(protowire.AppendTag(nil, 102, protowire.Fixed32Type), 1),
		protowire.AppendFixed64(protowire.AppendTag(nil, 103, protowire.Fixed64Type), 1),
	}, nil)
	huge := protowire.AppendVarint(protowire.AppendTag(nil, listItems, protowire.BytesType), 1<<62)
	for name, test := range map[string]struct {
		data  []byte
		names string // of the Events that are received
		err   string
	}{
		"unknown fields":            {around(unknown), "first last", ""},
		"unknown fields in Event":   {raw(item(append(unknown, encoded(&first)...))), "first", ""},
		"malformed Event":           {around(item([]byte("\x0a\x7f"))), "first last", "event 1 of the page"},
		"malformed name":            {around(item(bytesField(1, []byte("\x08\x01")))), "first last", "field 1: field 1: wire type 0"},
		"string in place of count":  {around(item(bytesField(15, nil))), "first last", "field 15: wire type 2"},
		"group in Event":            {around(item([]byte("\x0b"))), "first last", "field 1"},
		"metadata of the list":      {around(bytesField(listMeta, []byte("\x0a\x7f"))), "first", "metadata: unexpected EOF"},
		"item exceeds the list":     {around(huge), "first", "field exceeds the message: its length is 4611686018427387904"},
		"list exceeds the response": {append(protowire.AppendVarint(beginning(eventsv1.SchemeGroupVersion), 1<<62), huge...), "", "its length is 4611686018427387904"},
		"endless list":              {append(protowire.AppendVarint(beginning(eventsv1.SchemeGroupVersion), 1<<62), item(encoded(&first))...), "first", "after 1 events: unexpected EOF"},
		"length overflows":          {append(beginning(eventsv1.SchemeGroupVersion), strings.Repeat("\xff", 10)...), "", "overflows"},
		"length is negative":        {protowire.AppendVarint(beginning(eventsv1.SchemeGroupVersion), 1<<64-1), "", "exceeds"},
		"field 0":                   {around([]byte{0}), "first", "after 1 events: invalid tag 0x0"},
		"items have another type":   {around([]byte("\x10\x01")), "first", "field 2 has wire type 0"},
		"group":                     {around([]byte("\x4b")), "first", "wire type 3"},
	} {
		t.Run(name, func(t *testing.T) {
			got, meta, ok, err := receiveFrom(bytes.NewReader(test.data), eventsv1.SchemeGroupVersion)
			assert.True(t, ok)
			var names []string
			for _, r := range got {
				names = append(names, r.Name)
			}
			assert.Equal(t, test.names, strings.Join(names, " "))
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "listdecoder: read list of events.k8s.io/v1 events: ")
			require.ErrorContains(t, err, test.err)
			assert.Zero(t, meta)
		})
	}
}

// A length costs nothing until the data arrives.
func TestDecodeAllocatesWhatArrives(t *testing.T) {
	data := protowire.AppendVarint(beginning(eventsv1.SchemeGroupVersion), 1<<40)
	data = protowire.AppendVarint(protowire.AppendTag(data, listItems, protowire.BytesType), 1<<39)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, _, err := receiveFrom(bytes.NewReader(data), eventsv1.SchemeGroupVersion)
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// The strings of one Event do not change when the next one is decoded.
func TestWords(t *testing.T) {
	w, b := make(words), []byte("word")
	s := w.share(b)
	b[0] = 'W'
	assert.Equal(t, "word", s)
	for i := range 3 * maxWords {
		w.share([]byte(strings.Repeat("x", i%500) + string(rune(i))))
		assert.LessOrEqual(t, len(w), maxWords)
	}
	assert.Equal(t, strings.Repeat("x", maxWordBytes+1), w.share(bytes.Repeat([]byte("x"), maxWordBytes+1)))
	assert.NotContains(t, w, strings.Repeat("x", maxWordBytes+1))
}
