package events

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/series"
)

// A process of this version continues the Events that one of each earlier version has
// written, and leaves what that version can read.
func TestEventsOfEarlierVersions(t *testing.T) {
	files, err := filepath.Glob("../series/testdata/vectors/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var vectors []struct {
			Name   string
			Series series.Series
			Event  eventsv1.Event
		}
		require.NoError(t, json.Unmarshal(data, &vectors))
		for _, v := range vectors {
			if v.Series.Count == math.MaxInt32 {
				continue // no process has counted so much in ten minutes: the Event is not believed
			}
			runBubble(t, filepath.Base(file)+"/"+v.Name, func(t *testing.T) {
				s := newServer()
				time.Sleep(time.Until(v.Series.Last.Add(3 * time.Minute)))
				s.put(&v.Event)
				k := &v.Series.Key
				opts := Options{ReportingInstance: v.Series.Instance, listLimit: -1}
				if k.ReportingInstance == "" {
					opts.Scope = SameController
				}
				w := startOn(t, s, s, opts)
				recorder := w.broadcaster.NewRecorder(testScheme(), k.ReportingController)
				var related runtime.Object
				if !k.Related.IsZero() {
					related = ptr.To(k.Related.ObjectReference())
				}
				recorder.Eventf(ptr.To(k.Regarding.ObjectReference()), related, k.Type, k.Reason, k.Action, v.Series.Note)
				w.broadcaster.Shutdown()

				event := s.only(t)
				assert.Equal(t, v.Event.Name, event.Name)
				read, err := series.FromEvent(event)
				require.NoError(t, err)
				assert.EqualValues(t, min(int64(v.Series.Count)+1, math.MaxInt32), read.Count)
				assert.True(t, read.First.Equal(v.Series.First))
				assert.Equal(t, v.Series.Annotations, read.Annotations)
				assert.Empty(t, w.broadcaster.Stats().Dropped)
			})
		}
	}
}
