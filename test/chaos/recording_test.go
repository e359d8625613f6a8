package chaos

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
)

func TestScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broadcaster := events.NewBroadcaster(nil)
		defer broadcaster.Shutdown()
		ctx, cancel := context.WithTimeout(t.Context(), 5*scrapeInterval/2)
		defer cancel()
		var pipe bytes.Buffer
		scrapes(ctx, broadcaster, &reporter{begin: time.Now(), out: &pipe})
		var at []time.Duration
		require.NoError(t, readReports(&pipe, func(line report) {
			at = append(at, line.At)
			assert.Contains(t, line.Metrics, "\neventseries_occurrences_total 0\n")
		}))
		assert.Equal(t, []time.Duration{0, scrapeInterval, 2 * scrapeInterval}, at)
	})
}

func TestRecordingOfLives(t *testing.T) {
	begin := time.Unix(1e9, 0)
	const counter, gauge = "# TYPE a_total counter\na_total{x=\"y\"} ", "# TYPE b gauge\nb "
	scrape := func(second int, text string) report {
		return report{At: time.Duration(second) * time.Second, Metrics: text}
	}
	emissions := []*emission{
		{number: 0, lives: []*life{
			{begin: begin, lines: []report{scrape(0, counter+"1\n"), {Done: true}, scrape(2, counter+"2\n"+gauge+"7\n")}},
			{begin: begin.Add(time.Minute), lines: []report{scrape(1, counter+"0\n")}},
		}},
		{number: 1, lives: []*life{{begin: begin, lines: []report{scrape(0, counter+"5\n")}}}},
	}
	path := filepath.Join(t.TempDir(), "run")
	require.NoError(t, record(path, emissions))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	zip, err := gzip.NewReader(file)
	require.NoError(t, err)
	got, err := io.ReadAll(zip)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(`# TYPE a counter
a_total{instance="emitter-0-life-0",WHERE,x="y"} 1.0 1e+09
a_total{instance="emitter-0-life-0",WHERE,x="y"} 2.0 1.000000002e+09
a_total{instance="emitter-0-life-1",WHERE,x="y"} 0.0 1.000000061e+09
a_total{instance="emitter-1-life-0",WHERE,x="y"} 5.0 1e+09
# TYPE b gauge
b{instance="emitter-0-life-0",WHERE} 7.0 1.000000002e+09
# EOF
`, "WHERE", `job="chaos",namespace="chaos"`), string(got))

	assert.Error(t, record(path, nil), "nothing was recorded")
	emissions[1].lives[0].lines[0].Metrics = "no metrics"
	assert.Error(t, record(path, emissions))
}
