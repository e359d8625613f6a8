package tracker

import (
	"cmp"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// foreign is an Event that may be that of an earlier process, and may be anything.
type foreign struct {
	share            bool // whether instances share their series
	now              time.Time
	name             string // empty: the base name
	state, successor string
	count            int32
	age, lastAge     int64  // seconds before now
	patch            []byte // changes whatever else there is
}

// key returns the key of the series that meets it.
func (f *foreign) key() *series.Key {
	k := testKey("a")
	if f.share {
		k.ReportingInstance = ""
	}
	return k
}

func (f *foreign) table() *Table { return NewTable(Options{ShareInstances: f.share}, f.now) }

// event returns the Event, nil if the patch leaves none.
func (f *foreign) event(t *testing.T) *eventsv1.Event {
	k := f.key()
	s := series.Series{
		Key: *k, Instance: "controller-7", Namespace: "ns", Name: k.BaseName(), Note: "before",
		First: f.now.Add(-time.Duration(f.age) * time.Second), Last: f.now.Add(-time.Duration(f.lastAge) * time.Second), Count: f.count,
	}
	if !f.share {
		s.Instance = ""
	}
	if f.name != "" {
		s.Name = f.name
	}
	event := s.Event()
	event.Annotations = map[string]string{series.AnnotationState: f.state, series.AnnotationSuccessor: f.successor}
	if f.state == "" {
		delete(event.Annotations, series.AnnotationState)
	}
	// As an API server would, if it let anybody do so.
	var patch, whole any
	data, err := json.Marshal(event)
	if err != nil {
		return event // a time that JSON cannot tell; it may come all the same
	}
	if json.Unmarshal(f.patch, &patch) != nil || json.Unmarshal(data, &whole) != nil {
		return event
	}
	data, err = json.Marshal(mergePatch(whole, patch))
	require.NoError(t, err)
	var got eventsv1.Event
	if json.Unmarshal(data, &got) != nil {
		return nil
	}
	return &got
}

// isOurs says, in other words than the table, whether event can be that of a
// series of k, and goes on at now.
func isOurs(k *series.Key, share bool, event *eventsv1.Event, now time.Time) (ours, goesOn bool) {
	theirs := series.Key{
		Regarding: series.ReferenceOf(&event.Regarding), Related: series.ReferenceOf(event.Related), Type: event.Type,
		Action: event.Action, Reason: event.Reason,
		ReportingController: event.ReportingController, ReportingInstance: event.ReportingInstance,
	}
	if share {
		theirs.ReportingInstance = ""
	}
	if theirs != *k || event.Namespace != cmp.Or(k.Regarding.Namespace, metav1.NamespaceSystem) || !k.Named(event.Name) {
		return false, false
	}
	soon := now.Add(time.Minute)
	first := event.EventTime.Time
	if first.IsZero() || first.After(soon) {
		return false, false
	}
	if event.Series == nil {
		_, stated := event.Annotations[series.AnnotationState]
		return !stated, !stated && first.After(now.Add(-6*time.Minute))
	}
	last := event.Series.LastObservedTime.Time
	if event.Series.Count < 2 || last.Before(first) || last.After(soon) {
		return false, false
	}
	switch event.Annotations[series.AnnotationState] {
	case "Ongoing":
		return true, last.After(now.Add(-36 * time.Minute))
	case "Finished", "Unknown":
		return true, false
	default:
		_, stated := event.Annotations[series.AnnotationState]
		return !stated, false
	}
}

func addForeign(f *testing.F) {
	k := testKey("a")
	unique := k.UniqueName(start, 0)
	for _, patch := range []string{
		"", `{}`, `{"metadata":{"annotations":null}}`, `{"series":null}`, `{"eventTime":null}`, `{"reason":"Other"}`,
		`{"metadata":{"namespace":"other"}}`, `{"reportingInstance":"other"}`, `{"related":{"kind":"Node"}}`,
		`{"series":{"lastObservedTime":"9999-12-31T23:59:59.999999Z"}}`, `{"eventTime":"0001-01-01T00:00:00.000001Z"}`,
		`{"series":{"lastObservedTime":null}}`, `{"regarding":{"resourceVersion":"1"}}`, `[]`, `null`,
		`{"metadata":{"annotations":{"other":"x"}}}`, `{"metadata":{"name":"x"}}`,
	} {
		f.Add(false, "", "Ongoing", "", int32(100), int64(3600), int64(60), []byte(patch))
	}
	f.Add(true, "", "Ongoing", unique, int32(math.MaxInt32), int64(3600), int64(60), []byte(`{"reportingInstance":""}`))
	f.Add(false, "", "", "", int32(1), int64(60), int64(60), []byte(nil))
	f.Add(false, "", "", unique+" 2026-01-02T03:04:05Z", int32(1), int64(3600), int64(3600), []byte(nil))
	f.Add(false, unique, "Finished", k.BaseName(), int32(3), int64(3600), int64(3600), []byte(nil))
	f.Add(true, unique, "Ongoing", unique, int32(3), int64(36000), int64(3600), []byte(nil))
	f.Add(false, "", "Ongoing", "", int32(0), int64(math.MinInt64), int64(math.MaxInt64), []byte(nil))
	f.Add(false, "", "Ongoing", "x", int32(-1), int64(-61), int64(-60), []byte(nil))
}

// Whatever stands under a name that a series wants, it ends with an Event of its
// own after a few requests, and that is the Event which stands there only if it is
// of the same series.
func FuzzFound(f *testing.F) {
	addForeign(f)
	f.Fuzz(func(t *testing.T, share bool, name, state, successor string, count int32, age, lastAge int64, patch []byte) {
		its := &foreign{share, start, name, state, successor, count, age, lastAge, patch}
		event := its.event(t)
		var before []byte
		ours, goesOn := false, false
		if event != nil {
			before, _ = json.Marshal(event)
			ours, goesOn = isOurs(its.key(), share, event, start)
		}
		table := its.table()
		e := table.Observe(its.key(), Occurrence{Note: "now", Instance: "controller-8"}, start).Dirty[0]
		met := false
		for requests := 0; ; requests++ {
			if requests > 7 {
				t.Fatal("it does not come to an end")
			}
			w, _, ok := table.Begin(e, start)
			if !ok {
				break
			}
			stands := event != nil && w.Series.Name == event.Name
			switch {
			case w.Kind == WriteClose && !ours, w.Kind == WriteSuccessor && !ours:
				t.Errorf("%s of a stranger's Event", w.Kind)
				table.Written(e, w, start)
			case w.Creates() && (requests == 0 || stands):
				table.Taken(e, w, start)
			case w.Kind == WriteLook && !stands && met:
				table.Gone(e, w)
			case w.Kind == WriteLook:
				// At first it is also found under names that are not its own.
				met = true
				table.Found(e, w, event, start)
				if e.exists && !goesOn {
					t.Errorf("%+v is adopted", event)
				}
				if !e.exists && goesOn && stands {
					t.Errorf("%+v is not adopted", event)
				}
			default:
				if !w.Creates() && w.Series.Count < count {
					t.Errorf("%d turn into %d", count, w.Series.Count)
				}
				table.Written(e, w, start)
			}
			checkInvariants(t, table, 1)
		}
		if event != nil {
			if after, _ := json.Marshal(event); string(after) != string(before) {
				t.Error("to look at an Event has changed it")
			}
		}
	})
}

// Whatever is listed, it is restored only if it is of a series that this table
// could have begun, and goes on or says so.
func FuzzRestore(f *testing.F) {
	addForeign(f)
	f.Fuzz(func(t *testing.T, share bool, name, state, successor string, count int32, age, lastAge int64, patch []byte) {
		its := &foreign{share, start, name, state, successor, count, age, lastAge, patch}
		event := its.event(t)
		if event == nil {
			return
		}
		found, err := series.FromEvent(event)
		if err != nil {
			return
		}
		k := found.Key
		if share {
			k.ReportingInstance = ""
		}
		ours, goesOn := isOurs(&k, share, event, start)
		known := *found
		for _, occurred := range []bool{false, true} {
			table := its.table()
			now := start
			if occurred {
				table.Observe(&k, Occurrence{}, now)
			}
			e, eff := table.Restore(found, math.Abs(float64(age%1000)/1000), now)
			checkInvariants(t, table, 0)
			switch {
			case e == nil && goesOn:
				t.Errorf("%+v is not restored", event)
			case e == nil:
				continue
			case !ours || !goesOn && found.State != series.Ongoing:
				t.Errorf("%+v is restored", event)
			}
			if _, again := table.Restore(found, 0, now); len(again.Dirty) > 0 || len(again.Ended) > 0 {
				t.Error("it is restored a second time")
			}
			// It goes its way from here.
			for _, e := range append(eff.Dirty, e) {
				for range 5 {
					w, _, ok := table.Begin(e, now)
					if !ok {
						break
					}
					if w.Kind == WriteLook {
						table.Gone(e, w)
						continue
					}
					if w.Series.Count < found.Count || w.Series.Last.UnixMicro() < found.Last.UnixMicro() {
						t.Errorf("%+v becomes %+v", found, w.Series)
					}
					table.Written(e, w, now)
					now = now.Add(DefaultWindow + time.Minute)
					table.Expire(e, now)
				}
			}
			checkInvariants(t, table, 0)
		}
		if known.Key != found.Key || known.Count != found.Count || known.Name != found.Name {
			t.Error("to restore it has changed it")
		}
	})
}
