package series

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testSeries returns an ongoing series of 42 occurrences.
func testSeries() *Series {
	return &Series{
		Key:         *testKey("A"),
		State:       Ongoing,
		Namespace:   "ns",
		Name:        "pod-a.1890265525580052",
		Note:        "back-off 10s",
		LastNote:    "back-off 5m",
		Annotations: map[string]string{"example.com/team": "shop"},
		First:       time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC),
		Last:        time.Date(2026, 1, 2, 3, 14, 15, 0, time.UTC),
		Count:       42,
		Heartbeat:   30 * time.Minute,
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	require.NoError(t, err)
	return string(data)
}

func TestEvent(t *testing.T) {
	want := func(file string, s *Series) {
		golden, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		// Before v0.34, client-go encodes the zero time of creation.
		text := strings.Replace(toJSON(t, s.Event()), ",\n    \"creationTimestamp\": null", "", 1)
		assert.Equal(t, string(golden), text+"\n")
	}
	s := testSeries()
	want("series.json", s)
	s.State = Singleton // not set
	read, err := FromEvent(s.Event())
	require.NoError(t, err)
	assert.Equal(t, Unknown, read.State)
	s.State, s.Count, s.Last, s.LastNote, s.Annotations = Singleton, 1, s.First, "", nil
	s.Key.Related = Reference{Kind: "Node", Name: "n1", UID: "4f1c9d52-0b0e-4c3a-9a39-0f4b1d6e2f10"}
	want("singleton.json", s)
	for _, uid := range []types.UID{"", "two words", types.UID(strings.Repeat("u", 64))} {
		s.Key.Related.UID = uid
		assert.NotContains(t, s.Event().Labels, LabelRelatedUID, "%q is not a valid label value", uid)
	}
}

func TestPatch(t *testing.T) {
	const counted = `"series":{"count":42,"lastObservedTime":"2026-01-02T03:14:15.000000Z"}}`
	plain := func(s *Series) { s.LastNote, s.Annotations, s.Heartbeat = "", nil, 0 }
	for _, tt := range []struct {
		name   string
		change func(*Series)
		known  Series
		want   string
	}{
		{"all", func(*Series) {}, Series{}, `{"metadata":{"labels":{"eventseries.dev/state":"Ongoing"},"annotations":{"eventseries.dev/heartbeat":"30m",` +
			`"eventseries.dev/last-note":"back-off 5m","example.com/team":"shop"}},` + counted},
		{"version", func(s *Series) { plain(s); s.State, s.Version = Finished, "7" }, Series{},
			`{"metadata":{"resourceVersion":"7","labels":{"eventseries.dev/state":"Finished"}},` + counted},
		{"last note equals note", func(s *Series) { plain(s); s.LastNote = s.Note }, Series{},
			`{"metadata":{"labels":{"eventseries.dev/state":"Ongoing"},"annotations":{"eventseries.dev/last-note":null}},` + counted},
		{"largest count", func(s *Series) { plain(s); s.State, s.Count = Unknown, math.MaxInt32 }, Series{},
			`{"metadata":{"labels":{"eventseries.dev/state":"Unknown"}},` + strings.Replace(counted, "42", "2147483647", 1)},
		{"state and heartbeat known", func(s *Series) { plain(s); s.Version, s.Heartbeat = "7", time.Hour }, Series{State: Ongoing, Heartbeat: time.Hour},
			`{"metadata":{"resourceVersion":"7"},` + counted},
		{"state known", func(s *Series) { plain(s); s.Heartbeat = time.Hour }, Series{State: Ongoing, Heartbeat: time.Minute},
			`{"metadata":{"annotations":{"eventseries.dev/heartbeat":"1h"}},` + counted},
		{"window", func(s *Series) { plain(s); s.Window = 21 * time.Minute }, Series{State: Ongoing},
			`{"metadata":{"annotations":{"eventseries.dev/window":"21m"}},` + counted},
		{"window known", func(s *Series) { plain(s); s.Window = 21 * time.Minute }, Series{State: Ongoing, Window: 21 * time.Minute},
			`{` + counted},
		{"window of 6 minutes again", plain, Series{State: Ongoing, Window: 21 * time.Minute},
			`{"metadata":{"annotations":{"eventseries.dev/window":null}},` + counted},
		{"window of 6 minutes known", func(s *Series) { plain(s); s.Window = FinishAfter }, Series{State: Ongoing, Window: FinishAfter}, `{` + counted},
		{"window of 6 minutes not known", func(s *Series) { plain(s); s.Window = FinishAfter }, Series{State: Ongoing},
			`{"metadata":{"annotations":{"eventseries.dev/window":null}},` + counted},
		{"heartbeat known", func(s *Series) { plain(s); s.State, s.Heartbeat = Finished, time.Hour }, Series{State: Ongoing, Heartbeat: time.Hour},
			`{"metadata":{"labels":{"eventseries.dev/state":"Finished"}},` + counted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := testSeries()
			tt.change(s)
			got, err := s.PatchSince(&tt.known)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
		})
	}
	for _, count := range []int32{0, 1} {
		s := testSeries()
		s.Count = count
		_, err := s.Patch()
		assert.ErrorContains(t, err, "ns/pod-a.1890265525580052")
	}
}

// An Event with an eventTime has at most 1,024 bytes of a note. The rest is not lost: the annotation has
// the whole latest note.
func TestLongNotes(t *testing.T) {
	for _, text := range []string{"n", "é", "😀", "\u2028 "} {
		for length := 0; length <= 10_000; length = length*5/4 + 1 {
			note := strings.Repeat(text, length/len(text))
			for name, s := range map[string]*Series{
				"singleton":      {Note: note, First: time.Unix(1, 0), Count: 1},
				"series":         {Note: note, First: time.Unix(1, 0), Last: time.Unix(2, 0), Count: 2},
				"series, again":  {Note: note, LastNote: note, First: time.Unix(1, 0), Last: time.Unix(2, 0), Count: 2},
				"series, longer": {Note: "x", LastNote: note, First: time.Unix(1, 0), Last: time.Unix(2, 0), Count: 2},
			} {
				event := s.Event()
				require.LessOrEqual(t, len(event.Note), 1024, name)
				require.True(t, utf8.ValidString(event.Note), name)
				if len(s.Note) <= 1024 {
					require.Equal(t, s.Note, event.Note, name)
				}
				got, err := FromEvent(event)
				require.NoError(t, err)
				require.Equal(t, s.Note, got.Note, "%s, %d bytes", name, len(note))
				require.Equal(t, cmp.Or(s.LastNote, s.Note), cmp.Or(got.LastNote, got.Note), "%s, %d bytes", name, len(note))
				if s.Count < 2 || s.LastNote == "" {
					continue
				}
				var patch struct {
					Metadata struct{ Annotations map[string]*string }
				}
				data, err := s.Patch()
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(data, &patch))
				patched, hasPatched := patch.Metadata.Annotations[AnnotationLastNote]
				created, hasCreated := event.Annotations[AnnotationLastNote]
				require.True(t, hasPatched, name)
				require.Equal(t, hasCreated, patched != nil, name)
				if hasCreated {
					require.Equal(t, created, *patched, name)
				}
			}
		}
	}
}

// equalSeries reports whether two series are the same. Times are equal if they are
// the same instant. A last note that equals the note is not written.
func equalSeries(a, b *Series) bool {
	lastNote := func(s *Series) string {
		if s.LastNote == s.Note {
			return ""
		}
		return s.LastNote
	}
	return a.Key == b.Key && a.State == b.State && a.Namespace == b.Namespace && a.Name == b.Name &&
		a.Note == b.Note && lastNote(a) == lastNote(b) && maps.Equal(a.Annotations, b.Annotations) &&
		a.First.Equal(b.First) && a.Last.Equal(b.Last) && a.Count == b.Count && a.Heartbeat == b.Heartbeat && a.QuietWindow() == b.QuietWindow()
}

func TestFromEvent(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := &Series{
			Namespace: "ns", Name: "name",
			Note:  []string{"", "a", "b"}[rng.IntN(3)],
			First: time.UnixMicro(rng.Int64N(1 << 52)),
			Count: 1,
		}
		for _, field := range s.Key.fields() {
			*field = []string{"", "x", "y"}[rng.IntN(3)]
		}
		s.Last = s.First
		if rng.IntN(2) == 0 {
			s.Annotations = map[string]string{"a": "1", "b": ""}
		}
		if rng.IntN(3) > 0 {
			s.State = State(1 + rng.IntN(3))
			s.Count = 2 + rng.Int32N(math.MaxInt32-1)
			s.Last = s.First.Add(time.Duration(rng.Int64N(1<<40)) * time.Microsecond)
			s.LastNote = []string{"", "a", "b", "c"}[rng.IntN(4)]
			s.Heartbeat = time.Duration(rng.Int64N(3) * rng.Int64N(1<<rng.IntN(53)))
			s.Window = time.Duration(rng.Int64N(3) * rng.Int64N(1<<rng.IntN(53)))
		}
		event := s.Event()
		got, err := FromEvent(event)
		require.NoError(t, err)
		require.True(t, equalSeries(s, got), "seed %d: %+v is read as %+v", seed, s, got)

		// The same after encoding.
		var received eventsv1.Event
		require.NoError(t, json.Unmarshal([]byte(toJSON(t, event)), &received))
		got, err = FromEvent(&received)
		require.NoError(t, err)
		require.True(t, equalSeries(s, got), "seed %d: %+v is received as %+v", seed, s, got)

		// The result shares no memory with the Event.
		maps.DeleteFunc(event.Annotations, func(string, string) bool { return true })
		require.Equal(t, len(s.Annotations), len(got.Annotations))
	}
}

func TestFromEventOfOtherRecorders(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*eventsv1.Event)
		err    string // the suffix; empty for none
	}{
		{"as written", func(*eventsv1.Event) {}, ""},
		{"legacy Event", func(e *eventsv1.Event) { e.EventTime = metav1.MicroTime{} }, "no eventTime"},
		{"no state", func(e *eventsv1.Event) { delete(e.Labels, LabelState) }, ""},
		{"unknown state", func(e *eventsv1.Event) { e.Labels[LabelState] = "Paused" }, `label eventseries.dev/state is "Paused"`},
		{"empty state", func(e *eventsv1.Event) { e.Labels[LabelState] = "" }, `label eventseries.dev/state is ""`},
		{"state Singleton", func(e *eventsv1.Event) { e.Labels[LabelState] = "Singleton" }, `label eventseries.dev/state is "Singleton"`},
		{"state without series", func(e *eventsv1.Event) { e.Series = nil }, `label eventseries.dev/state is "Ongoing", but there is no series`},
		{"one occurrence", func(e *eventsv1.Event) { e.Series.Count = 1 }, "series.count is 1"},
		{"negative count", func(e *eventsv1.Event) { e.Series.Count = math.MinInt32 }, "series.count is -2147483648"},
		{"no lastObservedTime", func(e *eventsv1.Event) { e.Series.LastObservedTime = metav1.MicroTime{} }, "no series.lastObservedTime"},
		{"lastObservedTime before eventTime", func(e *eventsv1.Event) { e.Series.LastObservedTime.Time = e.EventTime.Add(-time.Microsecond) }, "is before eventTime 2026-01-02 03:04:05.678901 +0000 UTC"},
		{"no duration", func(e *eventsv1.Event) { e.Series.LastObservedTime = e.EventTime }, ""},
		{"zero Event", func(e *eventsv1.Event) { *e = eventsv1.Event{} }, "no eventTime"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			event := testSeries().Event()
			tt.change(event)
			s, err := FromEvent(event)
			if tt.err == "" {
				assert.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Nil(t, s)
			assert.True(t, strings.HasPrefix(err.Error(), "series: event "+event.Namespace+"/"+event.Name+": "), err)
			assert.True(t, strings.HasSuffix(err.Error(), tt.err), err)
		})
	}

	// Through core/v1, an annotation has the time of the first occurrence.
	want := testSeries()
	event := want.Event()
	event.Annotations[AnnotationEventTime] = "2026-01-02T03:04:05.678901Z"
	event.EventTime = metav1.MicroTime{}
	s, err := FromEvent(event)
	require.NoError(t, err)
	assert.True(t, equalSeries(want, s), "%+v is read as %+v", want, s)
	event.Annotations[AnnotationEventTime] = "soon"
	_, err = FromEvent(event)
	require.ErrorContains(t, err, "no eventTime")

	// client-go writes series without a state.
	event = testSeries().Event()
	delete(event.Labels, LabelState)
	s, err = FromEvent(event)
	require.NoError(t, err)
	assert.Equal(t, Unknown, s.State)

	// Only a series has a last note.
	event = testSeries().Event()
	event.Series = nil
	delete(event.Labels, LabelState)
	s, err = FromEvent(event)
	require.NoError(t, err)
	assert.Equal(t, Singleton, s.State)
	assert.Empty(t, s.LastNote)
}

// checkFromEvent reads an Event, and reads what the resulting series writes.
func checkFromEvent(t *testing.T, event *eventsv1.Event) {
	t.Helper()
	before := event.DeepCopy()
	s, err := FromEvent(event)
	if (s == nil) == (err == nil) {
		t.Fatalf("%+v is read as %v and %v", event, s, err)
	}
	if err != nil {
		if !strings.Contains(err.Error(), event.Namespace+"/"+event.Name) {
			t.Errorf("%v does not name %s/%s", err, event.Namespace, event.Name)
		}
		return
	}
	s.Key.Salt(s.Name, s.First) // does not panic
	if s.Count < 1 || s.Last.Before(s.First) || (s.State == Singleton) != (event.Series == nil) || (s.Count == 1) != (s.State == Singleton) {
		t.Errorf("%+v is not a valid series", s)
	}
	if s.Key.Regarding != ReferenceOf(&event.Regarding) || s.Key.Related != ReferenceOf(event.Related) || s.Note != event.Note {
		t.Errorf("%+v is read as %+v", event, s)
	}
	again, err := FromEvent(s.Event())
	if err != nil || !equalSeries(s, again) {
		t.Errorf("%+v becomes %+v, %v", s, again, err)
	}
	if _, err := s.Patch(); (err == nil) != (s.Count > 1) {
		t.Errorf("a patch of %+v: %v", s, err)
	}
	for k := range s.Annotations {
		if strings.HasPrefix(k, AnnotationPrefix) {
			t.Errorf("annotation %s of this project is returned", k)
		}
	}
	if toJSON(t, before) != toJSON(t, event) {
		t.Errorf("FromEvent has changed the Event")
	}
}

// FuzzFromEvent reads Events whose most important fields the arguments say. data
// changes the others, and is the whole Event if there is nothing else.
func FuzzFromEvent(f *testing.F) {
	add := func(data []byte) { f.Add("", "", "", false, int32(0), int64(0), int64(0), data) }
	for _, change := range []func(*Series){
		func(*Series) {},
		func(s *Series) { s.State, s.Count, s.Last = Singleton, 1, s.First },
		func(s *Series) { s.Key.Related = Reference{Name: "n"} },
	} {
		s := testSeries()
		change(s)
		data, err := json.Marshal(s.Event())
		require.NoError(f, err)
		add(data)
	}
	add([]byte(`{"eventTime":"2026-01-02T03:04:05.678901Z","series":{"count":-1,"lastObservedTime":null},"metadata":{"labels":{"eventseries.dev/state":"Unknown"},"annotations":{"eventseries.dev/heartbeat":"9223372036s"}}}`))
	add([]byte(`{"eventTime":"0001-01-01T00:00:00.000001Z","related":{}}`))
	pod := []byte(`{"metadata":{"namespace":"ns","name":"pod-a.1890265525580052"},"regarding":{"name":"pod-a","resourceVersion":"1"},"related":{"kind":"Node","resourceVersion":"1"}}`)
	f.Add("note", "Ongoing", "later", true, int32(42), int64(1_767_000_000_000_000), int64(60), pod)
	f.Add("same", "Finished", "same", true, int32(math.MinInt32), int64(math.MaxInt64), int64(math.MaxInt64), pod)
	f.Add("", "", "", false, int32(0), int64(0), int64(-1), []byte(`{"metadata":{"name":"a.`+strings.Repeat("0", 251)+`"}}`))
	f.Fuzz(func(t *testing.T, note, state, lastNote string, hasSeries bool, count int32, first, duration int64, data []byte) {
		event := &eventsv1.Event{Note: note, EventTime: metav1.NewMicroTime(time.UnixMicro(first))}
		event.Annotations = map[string]string{"other": note, AnnotationLastNote: lastNote, AnnotationHeartbeat: lastNote, AnnotationWindow: lastNote}
		maps.DeleteFunc(event.Annotations, func(_, value string) bool { return value == "" })
		if state != "" {
			event.Labels = map[string]string{"other": note, LabelState: state}
		}
		if hasSeries {
			event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(time.UnixMicro(first + duration))}
		}
		if json.Unmarshal(data, event) == nil || len(data) == 0 {
			checkFromEvent(t, event)
		}
	})
}

func TestState(t *testing.T) {
	for _, tt := range []struct {
		state  State
		text   string
		closed bool
	}{
		{Singleton, "Singleton", false},
		{Ongoing, "Ongoing", false},
		{Finished, "Finished", true},
		{Unknown, "Unknown", true},
	} {
		assert.Equal(t, tt.text, tt.state.String())
		assert.Equal(t, tt.closed, tt.state.Closed())
		parsed, ok := ParseState(tt.text)
		assert.True(t, ok)
		assert.Equal(t, tt.state, parsed)
	}
	assert.Equal(t, "Quiet", Quiet.String())
	assert.Equal(t, "State(9)", State(9).String())
	assert.Zero(t, Singleton)

	state, ok := ParseState("")
	assert.True(t, ok, "an Event without the label")
	assert.Equal(t, Singleton, state)
	for _, value := range []string{"ongoing", "Ongoing ", "State(1)", "0", "Quiet"} {
		_, ok := ParseState(value)
		assert.False(t, ok, value)
	}
}

func TestStateAt(t *testing.T) {
	for _, tt := range []struct {
		heartbeat string        // what the annotation says
		stale     time.Duration // since the last occurrence
	}{
		{"30m", 36 * time.Minute},
		{"1h30m", 96 * time.Minute},
		{"8760h", 8760*time.Hour + FinishAfter},
		// These are ignored.
		{"", DefaultHeartbeat + FinishAfter}, {"0s", 36 * time.Minute}, {"-1h", 36 * time.Minute},
		{"30", 36 * time.Minute}, {"8760h1ns", 36 * time.Minute}, {"3000000h", 36 * time.Minute},
	} {
		event := testSeries().Event()
		event.Annotations[AnnotationHeartbeat] = tt.heartbeat
		stale := event.Series.LastObservedTime.Add(tt.stale + ClockSkew)
		assert.Equal(t, Ongoing, StateAt(event, stale), tt.heartbeat)
		assert.Equal(t, Unknown, StateAt(event, stale.Add(1)), tt.heartbeat)
	}
	for window, stale := range map[string]time.Duration{"35m": 65 * time.Minute, "1m": 31 * time.Minute, "-1m": 36 * time.Minute, "long": 36 * time.Minute} {
		event := testSeries().Event()
		event.Annotations[AnnotationWindow] = window
		at := event.Series.LastObservedTime.Add(stale + ClockSkew)
		assert.Equal(t, Ongoing, StateAt(event, at), window)
		assert.Equal(t, Unknown, StateAt(event, at.Add(1)), window)
	}
	// The clock of a recorder that writes each heartbeat is 9 minutes behind that of the reader.
	event := testSeries().Event()
	for late := range DefaultHeartbeat / time.Minute {
		read := event.Series.LastObservedTime.Add(9*time.Minute + late*time.Minute)
		assert.Equal(t, Ongoing, StateAt(event, read), "%d minutes after the heartbeat", late)
	}

	// The clock of the reader is set back.
	last := event.Series.LastObservedTime.Time
	assert.Equal(t, Ongoing, StateAt(event, last.Add(-ClockSkew)))
	assert.Equal(t, Unknown, StateAt(event, last.Add(-ClockSkew-1)))

	event.Labels[LabelState] = "Finished"
	assert.Equal(t, Finished, StateAt(event, time.Unix(1<<40, 0)), "only Ongoing series become stale")
	assert.Equal(t, Finished, StateAt(event, time.Unix(0, 0)))
	event.Labels[LabelState] = "Paused"
	assert.Equal(t, Unknown, StateAt(event, event.EventTime.Time), "no series")
	event.Labels, event.Series = nil, nil
	assert.Equal(t, Singleton, StateAt(event, time.Unix(1<<40, 0)))
	assert.Equal(t, Unknown, StateAt(event, time.Unix(0, 0)))

	prompt := Series{State: Ongoing, Last: last, Heartbeat: time.Minute, Prompt: true}
	assert.Equal(t, Ongoing, prompt.StateAt(last.Add(time.Minute+FinishAfter)))
	assert.Equal(t, Quiet, prompt.StateAt(last.Add(time.Minute+FinishAfter+1)))
	assert.Equal(t, Unknown, (&Series{State: Ongoing}).StateAt(last), "no time")
}
