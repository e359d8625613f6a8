package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// Whatever the keys differ in, their heartbeats do not come at the same time: neither
// those of one process, nor those of the processes of a DaemonSet.
func TestHeartbeatsOfSimilarKeysSpread(t *testing.T) {
	for name, vary := range map[string]func(*series.Key, string){
		"namespace": func(k *series.Key, s string) { k.Regarding.Namespace = s },
		"name":      func(k *series.Key, s string) { k.Regarding.Name = s },
		"uid":       func(k *series.Key, s string) { k.Regarding.UID = types.UID(s) },
		"related":   func(k *series.Key, s string) { k.Related.Namespace = s },
		"note":      func(k *series.Key, s string) { k.Note = s },
		"instance":  func(k *series.Key, s string) { k.ReportingInstance = s },
	} {
		tr := New(Options{}, start)
		passGates(tr)
		const n, minutes = 1500, 30
		var due [minutes]int
		for i := range n {
			k := testKey("a")
			vary(k, fmt.Sprint("x-", i))
			require.Empty(t, tr.Observe(k, Occurrence{Note: "n", DistinctNotes: n}, start))
			w, _, ok := tr.Next(start)
			require.True(t, ok)
			due[(time.Hour-tr.jitter(w.entry, time.Hour))/time.Minute]++
		}
		assert.Less(t, slices.Max(due[:]), 2*n/minutes, "%s: %v", name, due)
	}
}
