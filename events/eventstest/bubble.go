package eventstest

import (
	"testing"
	"testing/synctest"
	"time"
)

// bubble is where time passes as the test says. It is a bubble of testing/synctest,
// which knows when all goroutines in it wait for something that only more time can
// bring: no polling, no sleeping, no guessing.
//
// Where the test does not run in a bubble itself, there is one beside it. Its main
// goroutine takes calls from a channel that was made outside, and waiting for that
// does not let time pass: it stands still until a call lets it go on. What is in
// the bubble must be touched in such a call alone.
type bubble struct {
	calls chan func()   // nil: the test runs in a bubble itself
	stop  chan struct{} // closed to end the bubble
	ended chan struct{} // closed when the bubble is gone
}

// newBubble returns the bubble that the test runs in, or makes one. inside gets the
// test as it is to be used in the bubble, and is called there.
func newBubble(t *testing.T, inside func(*testing.T)) *bubble {
	t.Helper()
	b := &bubble{calls: make(chan func()), stop: make(chan struct{}), ended: make(chan struct{})}
	began := make(chan bool, 1)
	go func() {
		defer close(b.ended)
		nested := true
		defer func() {
			// Nothing of it has run if this is a goroutine of a bubble already. There is no
			// other way to ask.
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
		synctest.Wait() // panics if that was not the reason
		inside(t)
		return &bubble{}
	}
	return b
}

// do calls f in the bubble, and returns when everything there that follows from it
// has been done. If the bubble is gone, f is not called.
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

// emit is do for what may come from several goroutines at a time. Where the test
// runs in a bubble itself, nobody but the test may wait for what follows from it.
func (b *bubble) emit(f func()) {
	if b.calls == nil {
		f()
		return
	}
	b.do(f)
}

// sleep lets time pass.
func (b *bubble) sleep(d time.Duration) { b.do(func() { time.Sleep(d) }) }

// end ends the bubble, and waits until all in it have ended.
func (b *bubble) end() {
	if b.calls != nil {
		close(b.stop)
		<-b.ended
	}
}
