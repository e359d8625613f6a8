package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestBackoffIsOneSeries has a loop back off over a restart. It is one Event, which is
// Ongoing until the loop stops, and Finished when it has been quiet for its window.
func TestBackoffIsOneSeries(t *testing.T) {
	t.Parallel()
	for name, sink := range sinks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const finishAfter, restartBefore, occurrences = 2 * time.Second, 5, 8
			namespace := apiserver.Namespace(t)
			pod := podIn(namespace, "failing")
			opts := events.Options{FinishAfter: finishAfter, MaxWindow: 6 * finishAfter, HeartbeatInterval: 5 * time.Second}
			r := startRecording(t, sink, apiserver.Config(t), opts)
			history := watchEvents(t, r.clients, namespace)
			opts.ReportingInstance = r.instance

			var last time.Time
			var longest time.Duration
			stalled := false // the machine let a delay take so long that the series was over
			for i := range occurrences {
				if i == restartBefore {
					r.Shutdown()
					r = startRecording(t, sink, apiserver.Config(t), opts)
				}
				now := time.Now()
				if i > 0 {
					stalled = stalled || now.Sub(last) > max(finishAfter, 2*longest)
					longest = max(longest, now.Sub(last))
				}
				emit(r.recorder(), pod, 1)
				last = now
				r.flush(t)
				event := eventAbout(t, r.clients, namespace, pod.UID)
				if i > 0 {
					assert.Equal(t, series.Ongoing.String(), state(event))
					assert.Equal(t, series.Ongoing, series.StateAt(event, time.Now()))
				}
				if i < occurrences-1 {
					// A back-off usually doubles. This one has time left for slow responses.
					<-time.After(min(max(finishAfter/4, longest*3/2), 2*finishAfter) - time.Since(last))
				}
			}
			require.Greater(t, longest, finishAfter, "a fixed window would end the series")

			finished := awaitFinished(t, r.clients, namespace, pod.UID)
			assert.GreaterOrEqual(t, time.Since(last), longest, "finished too early")
			assert.EqualValues(t, occurrences, finished.Series.Count)
			if !stalled {
				history.requireStates(t, "", "Ongoing", "Finished")
			}
		})
	}
}
