package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestFiguresOfThePage(t *testing.T) {
	var table strings.Builder
	row := func(what, unit string, measure func(t *testing.T, name string) int) {
		figures := map[string]int{}
		for name := range makers {
			t.Run(what+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { figures[name] = measure(t, name) })
			})
		}
		fmt.Fprintf(&table, "| %s | %d %s | %d |\n", what, figures["client-go"], unit, figures["eventseries"])
	}
	for _, answer := range []struct {
		code int
		err  error
	}{
		{429, apierrors.NewTooManyRequests("slow down", 1)},
		{500, apierrors.NewInternalError(fmt.Errorf("etcd has no leader"))},
		{503, apierrors.NewServiceUnavailable("not ready")},
	} {
		row(fmt.Sprintf("200 events while the server answers %d for a minute", answer.code), "lost", func(t *testing.T, name string) int {
			return 200 - deliveredAfter(t, name, answer.err)
		})
	}
	row("1,000 repeats about an object whose status changes each time", "Events", eventsAboutAChangingObject)
	row("a CronJob's 180 events of an hour, legacy recorder", "lost", func(t *testing.T, name string) int {
		return 180 - deliveredOfACronJob(t, name)
	})

	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), table.String())
}

// deliveredAfter returns how many of 200 events about different Pods the server has
// a quarter of an hour after the end of an outage.
func deliveredAfter(t *testing.T, name string, answer error) int {
	p := startProgram(t, name)
	p.sink.failWith(answer)
	for i := range 200 {
		p.emit(pod(fmt.Sprint("pod-", i)), "Testing")
	}
	time.Sleep(time.Minute)
	p.sink.failWith(nil)
	time.Sleep(15 * time.Minute)
	synctest.Wait()
	return len(p.stored(t))
}

// eventsAboutAChangingObject returns the number of Events for 1,000 occurrences if
// the controller updates the status of the object each time.
func eventsAboutAChangingObject(t *testing.T, name string) int {
	p := startProgram(t, name)
	about := pod("a")
	for i := range 1000 {
		about.ResourceVersion = fmt.Sprint(i)
		p.emit(about.DeepCopy(), "Testing")
		time.Sleep(time.Second)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	return len(p.stored(t))
}

// deliveredOfACronJob returns how many occurrences the Events report if, for an
// hour, a CronJob creates, completes and deletes a Job each minute.
func deliveredOfACronJob(t *testing.T, name string) int {
	p := newLegacyProgram(t.Context(), t, name)
	p.start()
	about := &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "ns", Name: "each-minute", UID: "uid-1"}
	for minute := range 60 {
		p.recorder.Eventf(about, corev1.EventTypeNormal, "SuccessfulCreate", "Created job each-minute-%d", minute)
		time.Sleep(10 * time.Second)
		p.recorder.Eventf(about, corev1.EventTypeNormal, "SawCompletedJob", "Saw completed job: each-minute-%d, condition: Complete", minute)
		time.Sleep(10 * time.Second)
		p.recorder.Eventf(about, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted job each-minute-%d", minute-3)
		time.Sleep(40 * time.Second)
	}
	p.broadcaster.Shutdown()
	synctest.Wait()
	delivered := 0
	for _, event := range p.stored(t) {
		delivered += int(max(event.Count, 1))
	}
	return delivered
}
