package eventstest_test

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// noon is a clock that stands still.
var noon = clocktesting.NewFakePassiveClock(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

// printer is a test that prints what is reported to it: examples have no other.
type printer struct{ testing.TB }

func (printer) Helper()        {}
func (printer) Cleanup(func()) {}

func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
