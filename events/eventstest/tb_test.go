package eventstest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tb is a test that records its failures.
type tb struct {
	testing.TB

	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (t *tb) Helper() {}

func (t *tb) Errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

func (t *tb) Error(args ...any) { t.Errorf("%s", fmt.Sprint(args...)) }

func (t *tb) Skip(args ...any) { t.Errorf("skipped: %s", fmt.Sprint(args...)) }

func (t *tb) Context() context.Context { return context.Background() }

func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// end ends the test.
func (t *tb) end() {
	for _, f := range t.cleanups {
		f()
	}
}

// take returns the failures since the last take.
func (t *tb) take() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := strings.Join(t.failures, "\n")
	t.failures = nil
	return all
}
