package events

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

// A new leader finds the series of the old one by its list. The old leader emits nothing any
// more, but its broadcaster runs on for a while. It must not finish a loop that goes on in the
// new leader.
func TestOldLeaderFinishesNothingThatGoesOn(t *testing.T) {
	for _, period := range []time.Duration{time.Second, time.Minute, 5 * time.Minute, 1000 * time.Second} {
		runBubble(t, period.String(), func(t *testing.T) {
			on := newLister()
			on.api.TTL = time.Hour
			old := startOn(t, on.server, on, Options{Scope: SameController})
			for end := time.Now().Add(61 * time.Minute); time.Now().Before(end); time.Sleep(period) {
				old.emit(0)
			}
			synctest.Wait()
			leader := startOn(t, on.server, on, Options{Scope: SameController, ReportingInstance: "tester-2"})
			leader.emit(1) // another object: the list follows, and restores the loop
			synctest.Wait()
			began, wrong := time.Now(), time.Duration(0)
			time.AfterFunc(50*time.Minute, old.broadcaster.Shutdown)
			look := min(period, 10*time.Second)
			for end := began.Add(90 * time.Minute); time.Now().Before(end); {
				leader.emit(0)
				for next := time.Now().Add(period); time.Now().Before(next); time.Sleep(look) {
					synctest.Wait()
					for _, event := range on.list() {
						if event.Regarding.Name == "pod-0" && series.StateAt(event, time.Now()) != series.Ongoing {
							wrong += look
						}
					}
				}
			}
			leader.broadcaster.Shutdown()
			require.Zero(t, wrong, "the time in which users see that it is over")
		})
	}
}
