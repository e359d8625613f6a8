package events

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// Somebody restores a backup of etcd. Events and resourceVersions go back, Events that were
// deleted since then return, and newer ones are gone. Loops that go on are one Event each
// again, with all occurrences. If the process restarts, too, it knows those before only from
// what is restored, in which a loop can have ended long ago.
func TestRestoredBackup(t *testing.T) {
	for seed := range workload.Seeds(5) {
		for _, restarts := range workload.Some(true, false) {
			runBubble(t, fmt.Sprintf("%d, restarts: %t", seed, restarts), func(t *testing.T) { restoreBackup(t, seed, restarts) })
		}
	}
}

func restoreBackup(t *testing.T, seed uint64, restarts bool) {
	rng := rand.New(rand.NewPCG(seed, 2))
	minutes := func(from, to int) time.Duration { return time.Duration(from*60+rng.IntN((to-from)*60)) * time.Second }
	s := newServer()
	s.replay = newReplay(t, seed)
	s.api.TTL = minutes(60, 180)
	opts := Options{EventTTL: s.api.TTL, Scope: []Scope{SameInstance, SameController}[rng.IntN(2)], FirstHeartbeat: time.Duration(rng.IntN(2)) * time.Second}
	w := startOn(t, s, s, opts)

	type loop struct {
		workload.Loop
		next            func() time.Duration
		at              time.Duration // of the next occurrence
		emitted, before int           // all, and those before the backup is restored
	}
	var loops []*loop
	for _, l := range workload.Loops() {
		if l.Longest <= 1000*time.Second {
			loops = append(loops, &loop{Loop: l, next: l.Gaps(rng.Uint64()), at: minutes(0, 120)})
		}
	}
	backupAt := minutes(30, 120)
	restoreAt := backupAt + minutes(1, 50)
	downAt := restoreAt - minutes(0, 10)
	var backup *fakeapi.Backup
	for now := time.Duration(0); now < restoreAt+2*time.Hour; now += time.Second {
		switch now {
		case backupAt:
			backup = s.api.Backup()
		case downAt:
			s.script(always(urlError(syscall.ECONNREFUSED)))
		case restoreAt:
			if restarts {
				w.kill()
			}
			s.api.Restore(backup)
			for _, l := range loops {
				l.before = l.emitted
			}
			s.script(nil)
			if restarts {
				w = startOn(t, s, s, opts)
			}
		}
		for i, l := range loops {
			for ; l.at <= now; l.at += l.next() {
				w.emit(i)
				l.emitted++
			}
		}
		time.Sleep(time.Second + drift)
	}
	w.flush(t)
	s.assertNoProblems(t)
	assert.Empty(t, w.dropped())
	ongoing := make(map[string][]*eventsv1.Event)
	for _, event := range s.list() {
		if name := event.Regarding.Name; series.StateAt(event, time.Now()) == series.Ongoing {
			ongoing[name] = append(ongoing[name], event)
		} else {
			assert.True(t, restarts, "%s is %v", name, series.StateAt(event, time.Now()))
		}
	}
	for i, l := range loops {
		found := ongoing[testPod(i).Name]
		require.Len(t, found, 1, l.Name)
		if count := int(found[0].Series.Count); restarts {
			assertBetween(t, l.emitted-l.before, l.emitted, count)
		} else {
			assert.Equal(t, l.emitted, count, l.Name)
		}
	}
}
