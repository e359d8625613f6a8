package eventstest

import (
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs functions in a bubble of testing/synctest, whose time the test controls.
//
// If the test does not run in a bubble itself, there is one next to it. Its main
// goroutine receives calls from a channel that was created outside. This wait does not
// let the virtual time pass, so time stands still between calls. Only such a call may
// touch what lives in the bubble.
type bubble struct {
	calls chan func()   // nil if the test runs in a bubble itself
	stop  chan struct{} // closed to end the bubble
	ended chan struct{} // closed when the bubble is gone
}

// newBubble returns the bubble in which the test runs, or a new one. It calls inside in
// the bubble, with the T to use there.
func newBubble(t *testing.T, inside func(*testing.T)) *bubble {
	t.Helper()
	b := &bubble{calls: make(chan func()), stop: make(chan struct{}), ended: make(chan struct{})}
	began := make(chan bool, 1)
	go func() {
		defer close(b.ended)
		nested := true
		defer func() {
			// synctest.Test panics at once if this goroutine runs in a bubble already. There is
			// no other way to find out.
			if nested && recover() != nil {
				began <- false
			}
		}()
		synctest.Test(t, func(t *testing.T) {
			nested = false
			inside(t)
			synctest.Wait()
			began <- true
			for {
				select {
				case call := <-b.calls:
					call()
				case <-b.stop:
					return
				}
			}
		})
	}()
	if !<-began {
		<-b.ended
		synctest.Wait() // panics if there was another reason
		inside(t)
		return &bubble{}
	}
	return b
}

// do calls f in the bubble, and returns when all goroutines there wait for time to
// pass. If the bubble has ended, do does nothing.
func (b *bubble) do(f func()) {
	if b.calls == nil {
		synctest.Wait()
		f()
		synctest.Wait()
		return
	}
	done := make(chan struct{})
	call := func() {
		defer close(done)
		f()
		synctest.Wait()
	}
	select {
	case b.calls <- call:
		<-done
	case <-b.ended:
	}
}

// emit is like do, for concurrent calls. If the test runs in a bubble itself, emit does
// not wait, because only one goroutine at a time may call synctest.Wait.
func (b *bubble) emit(f func()) {
	if b.calls == nil {
		f()
		return
	}
	b.do(f)
}

// sleep advances the time.
func (b *bubble) sleep(d time.Duration) { b.do(func() { time.Sleep(d) }) }

// end ends the bubble, and waits for its goroutines.
func (b *bubble) end() {
	if b.calls != nil {
		close(b.stop)
		<-b.ended
	}
}
