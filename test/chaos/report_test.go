package chaos

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
)

func TestReportsAreReadAsTheyWereWritten(t *testing.T) {
	want := []report{
		{Seq: 1, Batch: []burst{{Key: 0, Count: 2}, {Key: 3, Count: 1}}},
		{Seq: 1, Done: true},
		{Seq: 1, Flushed: true},
		{Sent: &addition{Key: 1, Event: "e", Count: 2}},
		{Acked: &addition{Key: 1, Event: "e", Count: 2}},
		{Dropped: &loss{Key: 3, Count: 7, Reason: events.DropShutdown}},
		{Stats: statsOf(events.Stats{
			Occurrences: 3, Adopted: 1, Restored: 2,
			Dropped: map[events.DropReason]uint64{events.DropShutdown: 7},
			Writes:  map[events.WriteKey]uint64{{Kind: "create", Outcome: "written"}: 1, {Kind: "look", Outcome: "written"}: 2},
		})},
		{Metrics: "a 1\n"},
		{Failed: "flush"},
		{Ended: true},
	}
	var pipe bytes.Buffer
	r := &reporter{begin: time.Now(), out: &pipe}
	for _, line := range want {
		r.write(line)
	}
	pipe.WriteString(`{"seq":2,"batch":[{"k":1`) // it was killed here
	var got []report
	last := time.Duration(0)
	require.NoError(t, readReports(&pipe, func(line report) {
		assert.Greater(t, line.At, last)
		last, line.At = line.At, 0
		got = append(got, line)
	}))
	assert.Equal(t, want, got)
	assert.Equal(t, map[string]uint64{"written create": 1, "written look": 2}, got[6].Stats.Writes)
}

func TestReportThatIsNone(t *testing.T) {
	err := readReports(strings.NewReader("WARNING: DATA RACE\n"), func(report) {})
	assert.ErrorContains(t, err, "DATA RACE")
}
