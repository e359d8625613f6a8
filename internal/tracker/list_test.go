package tracker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLists takes a list through the script in testdata/lists.txt. A line is
//
//	TIME COMMAND [ARGUMENT] -> what follows
//
// "list" lists in a namespace, "next" shows the request to make, and the others are
// responses to it. "events" is the answer to a question: their number, and the version.
// "write" writes an event, whose resourceVersion the server returns.
func TestLists(t *testing.T) {
	var tr *Tracker
	var w *Write
	golden(t, "testdata/lists.txt", func(command string) string {
		fields := strings.Fields(command)
		if fields[0] == "options" {
			opts := Options{}
			for _, option := range fields[1:] {
				name, value, _ := strings.Cut(option, "=")
				switch name {
				case "scope":
					opts.Scope = SameController
				case "limit":
					opts.ListLimit = parse(t, strconv.Atoi, value)
				case "ttl":
					opts.EventTTL = parse(t, time.ParseDuration, value)
				default:
					require.Fail(t, "unknown option", option)
				}
			}
			tr = New(opts, start)
			return ""
		}
		now := start.Add(parse(t, time.ParseDuration, fields[0]))
		arg := ""
		if len(fields) > 2 {
			arg = fields[2]
		}
		tr.Advance(now)
		result := Result{Outcome: Written}
		switch fields[1] {
		case "list":
			tr.List("example.com/x", arg, now)
			return "listed"
		case "write":
			tr.Observe(testKey(arg), Occurrence{}, now)
			written := send(t, tr, now, Create)
			event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: arg}}
			require.Empty(t, tr.Apply(written, Result{Event: event}, now))
			return "written"
		case "next":
			var ok bool
			if w, _, ok = tr.Next(now); !ok {
				if placesOf(tr).queued == 0 {
					return "nothing, ever"
				}
				return "nothing yet"
			}
			require.Equal(t, List, w.Kind)
			if p := w.Page; p.Most > 0 {
				return fmt.Sprintf("ask about %q: at most %d events and version %d", p.Namespace, p.Most, p.Latest)
			}
			return fmt.Sprintf("page %q of %q, %d events", w.Page.Continue, w.Page.Namespace, w.Page.Limit)
		case "events":
			result.Listed.Events = int64(parse(t, strconv.Atoi, arg))
			if len(fields) > 3 {
				result.Listed.Version = uint64(parse(t, strconv.Atoi, fields[3]))
			}
		case "page":
			result.Listed = Listed{Continue: arg, Streamed: true}
		case "last":
		case "expired":
			result = Result{Outcome: Refused, Listed: Listed{Expired: true}}
		case "pushedBack":
			result = Result{Outcome: PushedBack, RetryAfter: time.Minute}
		default:
			i := slices.Index(outcomeNames[:], fields[1])
			require.GreaterOrEqual(t, i, 0, fields[1])
			result.Outcome = Outcome(i)
		}
		tr.Apply(w, result, now)
		return "applied"
	})
}

// The processes of a cluster that start within a minute ask in ten minutes.
func TestListsOfManyProcesses(t *testing.T) {
	const processes = 3000
	var minutes [11]int
	for i := range processes {
		now := start.Add(time.Duration(i) * time.Minute / processes)
		tr := New(Options{Capacity: 1}, now)
		tr.List("example.com/agent", "", now)
		at, request := tr.Wake(now)
		require.Zero(t, request)
		tr.Advance(at)
		_, _, ok := tr.Next(at)
		require.True(t, ok)
		minutes[at.Sub(start)/time.Minute]++
	}
	assert.Less(t, slices.Max(minutes[:]), processes*14/100, minutes)
	assert.Greater(t, slices.Min(minutes[1:9]), processes*8/100, minutes)
}

// A process writes 2,500 Events at its start, at Options.QPS. The rest of the cluster is idle.
// It is no large cluster for that.
func TestOwnWritesDoNotMakeAClusterLarge(t *testing.T) {
	tr := New(Options{EventTTL: 6 * time.Minute}, start) // the list comes in the first minute
	now, version, asked := start, uint64(1000), 0
	tr.List("example.com/x", "", now)
	for i := range 70 * 50 {
		if i < 2500 {
			tr.Observe(testKey(fmt.Sprint(i)), Occurrence{}, now)
		}
		tr.Advance(now)
		for w, _, ok := tr.Next(now); ok; w, _, ok = tr.Next(now) {
			if w.Kind == List && w.Page.Most > 0 {
				asked++
				require.False(t, w.Page.IsTooLarge(Listed{Events: 5, Version: version}), "after %v: %d writes, the latest version is %d", now.Sub(start), version-1000, w.Page.Latest)
				tr.Apply(w, Result{Listed: Listed{Events: 5, Version: version}}, now)
			} else if w.Kind != List {
				version++
				tr.Apply(w, Result{Event: &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{ResourceVersion: versionText(version)}}}, now)
			}
		}
		now = now.Add(time.Second / 50)
	}
	require.NotZero(t, asked)
}

// A server in trouble is asked less and less often.
func TestListBacksOff(t *testing.T) {
	tr := New(Options{ListLimit: -1}, start)
	tr.List("example.com/x", "", start)
	now, last := start, time.Duration(0)
	for range 5 {
		w, ready := await(t, tr, now)
		require.Equal(t, List, w.Kind)
		tr.Apply(w, Result{Outcome: Troubled}, ready)
		_, next := tr.Wake(ready)
		wait := next.Sub(ready)
		assert.Greater(t, wait, last)
		now, last = ready, wait
	}
}

// Lists are rare, so one does not wait behind other requests that are ready.
func TestListGoesFirst(t *testing.T) {
	tr := New(Options{ListLimit: -1}, start)
	for i := range 10 {
		observe(tr, testKey(fmt.Sprint("pod-", i)), start, Occurrence{})
	}
	tr.List("example.com/x", "", start.Add(time.Minute))
	w, _, ok := tr.Next(start.Add(time.Minute))
	require.True(t, ok)
	assert.Equal(t, List, w.Kind)
}
