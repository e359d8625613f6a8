package events

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

func TestHotLoopBeginsWithTwoRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		before int // the start
		want   []string
	}{
		"after the first write":  {1, []string{"create", "patch"}},
		"before the first write": {10000, []string{"create"}},
	} {
		runBubble(t, name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.emitTimes(tt.before)
			w.start(t)
			synctest.Wait()
			w.emitTimes(10000 - tt.before)
			time.Sleep(time.Minute)
			assert.Equal(t, tt.want, verbs(w.server.log()))
			w.flush(t)
			event := w.server.only(t)
			assert.EqualValues(t, 10000, countOf(event))
			assert.Equal(t, series.Ongoing.String(), stateOf(event))
			w.broadcaster.Shutdown()
			w.assertAccounted(t)
		})
	}
}

func verbs(requests []request) []string {
	var verbs []string
	for _, r := range requests {
		verbs = append(verbs, r.Verb)
	}
	return verbs
}
