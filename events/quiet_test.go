package events

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// A recorder that has no trouble says nothing at the default verbosity, whatever
// series do in it, from its start to its end.
func TestHealthyRecorderIsQuiet(t *testing.T) {
	for name, scope := range map[string]Scope{"SameInstance": SameInstance, "SameController": SameController} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said []string
				logger := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{Verbosity: 0})
				s := &lister{server: newServer()}
				s.ttl = time.Hour
				s.latency = 5 * time.Millisecond
				life := func(during time.Duration, kill bool) Stats {
					w := newWorldOn(t, s.server, s, Options{Scope: scope})
					w.broadcaster.log.Store(&logger)
					require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(t.Context(), logger)))
					stop, err := w.broadcaster.StartEventWatcher(func(runtime.Object) {})
					require.NoError(t, err)
					defer stop()
					begin := time.Now()
					for i := 0; time.Since(begin) < during; i++ {
						w.emit(0)      // a loop that never ends
						if i%90 == 0 { // one that comes back when its Event is closed
							for range 3 {
								w.emitAs("Warning", 1)
							}
						}
						if i%20 == 0 {
							w.emit(2) // singletons
						}
						w.recorder.(AnnotatedEventRecorder).AnnotatedEventf(testPod(3), testPod(4), map[string]string{"example.com/n": fmt.Sprint(i)},
							"Normal", "Tested", "Testing", "%d", i)
						time.Sleep(30 * time.Second)
						if i == 100 {
							s.remove() // somebody deletes all Events
						}
					}
					if kill {
						w.kill()
					} else {
						w.broadcaster.Shutdown()
					}
					assert.Empty(t, w.broadcaster.Stats().Dropped)
					return w.broadcaster.Stats()
				}
				kinds := make(map[WriteKey]uint64)
				lives := []Stats{life(5*time.Hour, true), life(5*time.Hour, false), life(2*time.Hour, false)}
				var adopted, restored uint64
				for _, stats := range lives {
					adopted += stats.Adopted
					restored += stats.Restored
					for kind, n := range stats.Writes {
						kinds[kind] += n
					}
				}
				// Otherwise the silence would mean little.
				for _, kind := range []string{"create", "series", "heartbeat", "recreate", "finish", "flush", "list", "look"} {
					assert.Positive(t, kinds[WriteKey{kind, "written"}], kind)
				}
				assert.Positive(t, kinds[WriteKey{"create", "taken"}])
				assert.Positive(t, adopted+restored)
				t.Logf("%v, %d adopted, %d restored", kinds, adopted, restored)
				assert.Empty(t, said)
			})
		})
	}
}
