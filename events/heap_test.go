package events

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/internal/workload"
)

// A series keeps its first and its latest note, of at most 4 KiB each, whatever the program passes. So a full
// table of the default capacity takes at most 575 MB.
func TestHeapOfLongNotes(t *testing.T) {
	workload.Large(t)
	const n = 2000
	clock := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	b, err := New(&EventSinkImpl{}, Options{clock: clock})
	require.NoError(t, err)
	r := b.NewRecorder(nil, "tester")
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for occurrence := range 3 {
		for i := range n {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("pod-", i)}}
			r.Eventf(pod, nil, corev1.EventTypeWarning, "Denied", "Admit", "%d %s", occurrence, strings.Repeat("é", 100_000))
			clock.Step(10 * time.Millisecond)
		}
	}
	per := (heap() - before) / n
	t.Logf("%d bytes a series: %d MB in a full table", per, per*65_536/1_000_000)
	assert.Greater(t, per, uint64(2*4096), "two notes")
	assert.LessOrEqual(t, per*65_536, uint64(575_000_000))
	runtime.KeepAlive(b)
}
