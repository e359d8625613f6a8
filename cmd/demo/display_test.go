package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

func TestScreenRedrawsTheTable(t *testing.T) {
	var out strings.Builder
	c := &screen{out: &out, size: func() size { return size{80, 24} }}
	c.draw(example())
	assert.NotContains(t, out.String(), "\x1b[10A", "earlier output stays")

	out.Reset()
	c.end(example())
	assert.True(t, strings.HasPrefix(out.String(), "\x1b[10A\r  12s  the controllers"), out.String())
	assert.Equal(t, 10, strings.Count(out.String(), clearLine+"\n"), "each line is cleared to its end")
	assert.True(t, strings.HasSuffix(out.String(), "\n"+clearBelow))
}

func TestFileGetsLines(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer out.Close()
	assert.Equal(t, size{80, 24}, terminalSize(out))
	d := newDisplay(out, false)
	s := example()
	for i, what := range []step{stepCreated, stepHeartbeat, stepFinished} {
		d.changed(s, what, s.rows[i])
	}
	d.draw(s)
	d.end(s)
	written, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Equal(t, `    TIME  CHANGE     STATE        COUNT  EVENT
   12.3s  created    Singleton        1  shop Pod/web-4kzqh Created: container app
   12.3s  heartbeat  Ongoing      5,109  shop Backup/nightly SnapshotFailed: snapshot of orders-data failed: quota exceeded
   12.3s  finished   Finished         4  kube-system Node/worker-3 NodeNotReady: no news for 40s
   12.3s  ---------  12,007 occurrences, 8 API calls; one write per occurrence: 12,007, 1,500 times as many (the controllers emit for another 8s)
`, string(written))
}

func TestNewRow(t *testing.T) {
	s := at(3, series.Ongoing, 40)
	s.Namespace, s.Note, s.LastNote = namespace, "first", "latest\nof many"
	l := &lifecycle{subject: crashing}
	l.advance(s)
	assert.Equal(t, row{
		subject: crashing, namespace: namespace, state: series.Ongoing,
		count: 40, emitted: 41, age: time.Minute, note: "latest of many",
	}, newRow(l, 41, s.First.Add(time.Minute)))

	s.LastNote = ""
	l.advance(s)
	assert.Equal(t, "first", newRow(l, 41, s.First).note)
}
