package eventstest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
)

// SinkUnderTest is a sink for [TestSink] or [CheckSink], with what they have to know
// about it.
type SinkUnderTest struct {
	// Sink is the sink. If it is an [events.EventLister], its List is tested, too.
	Sink events.EventSink

	// Namespaces are two namespaces to which the sink can write. The Events stay there.
	// If empty, they are "default" and "kube-system", which every cluster has.
	Namespaces [2]string

	// Unversioned says that the server behind the sink has no resourceVersions, like
	// client-go's fake clientset. The rules about them do not apply then. Do not use such
	// a sink with the [events.Options.Scope] SameController.
	Unversioned bool

	// Adds are the keys of labels and annotations that the sink adds to each Event, such as
	// "example.com/team". Only the rule about what the sink
	// adds applies to them.
	Adds []string

	// Stall, if set, keeps the server behind the sink from responding until the test
	// calls resume. If nil, the rule that a call returns when its context ends is
	// skipped.
	Stall func() (resume func())
}

// Timeouts for a sink.
const (
	// ruleTimeout bounds all calls for one rule.
	ruleTimeout = time.Minute
	// stallTime is how long a call waits for a response that does not come.
	stallTime = 100 * time.Millisecond
	// returnGrace is how long a call may take to return after its context has ended.
	returnGrace = 10 * time.Second
)

// errSkipped is the error of a rule that does not apply to a sink.
var errSkipped = errors.New("rule does not apply")

// TestSink tests that a broadcaster can use a sink. It runs a subtest for each rule,
// with a sink from newSink. These are the rules, and why a broadcaster needs them:
//
//   - Create writes the whole Event, with a name of up to 253 bytes and a note of up to
//     1024. A restarted process compares all fields that tell series apart, and people
//     read the others.
//   - Times keep their microseconds. When the response to a create is lost, the
//     recorder recognizes its own Event by the eventTime.
//   - Create accepts a series. If something occurs often before the recorder can write
//     it, its first write is a series.
//   - Create returns the Event and its resourceVersion, which is the precondition of the
//     next patch.
//   - Create of an existing name returns AlreadyExists (apierrors.IsAlreadyExists) and
//     changes nothing. This is how the recorder finds the Event of an earlier process.
//   - Namespaces are separate. The same name in another namespace is another Event.
//   - An empty patch returns the whole Event and changes nothing. Recorders that may
//     only create and patch read Events this way.
//   - A patch sets the series and returns the Event as stored.
//   - A patch merges labels and annotations. It removes those that are null, and keeps
//     those that it does not name, which may be somebody else's.
//   - A patch is idempotent. The recorder sends it again when the response was lost.
//   - A patch changes nothing else. The Event next to the patch only says which Event to
//     patch; its fields may be older or newer than those on the server.
//   - A patch of a missing Event returns NotFound (apierrors.IsNotFound) and creates
//     nothing. The recorder then creates the Event again.
//   - A patch with a stale resourceVersion returns Conflict (apierrors.IsConflict) and
//     changes nothing. Otherwise two processes undo each other's counts.
//   - Calls do not modify their arguments, which belong to the caller.
//   - Calls are safe for concurrent use, for different Events and for the same one. A broadcaster has
//     several requests in flight, and there may be other processes.
//   - A call after the end of its context takes effect or returns an error. The
//     recorder cannot retry a write that is lost without an error.
//   - A call returns when its context ends (see [SinkUnderTest.Stall]). Until then, the
//     series and [events.Broadcaster.Shutdown] wait for it.
//   - What the sink adds (see [SinkUnderTest.Adds]) is there after Create, stays when Events
//     are patched, and is not a label or annotation of this project.
//   - List, if the sink has it, returns every selected Event of a namespace and of all
//     namespaces, and more if it likes. It returns whole Events, and has a last page.
//     The recorder does not finish series that List omits.
//
// A sink that wraps another one, to add labels for example, keeps the same rules. It changes
// a copy of the Event in Create, and passes patches on as they are. It has the method List if
// the other sink has it: without List, a broadcaster does not find the series of earlier
// processes by listing. A sink in front of core/v1 receives Events of events.k8s.io/v1, as
// every sink does.
//
// The recorder retries after errors of the API (apierrors.APIStatus), the network, and
// contexts. After any other error, it retries after longer delays, and gives up after [events.Options].EventTTL: see [events.EventSink].
func TestSink(t *testing.T, newSink func(t *testing.T) SinkUnderTest) {
	t.Helper()
	for _, rule := range sinkRules {
		t.Run(rule.name, func(t *testing.T) { rule.report(t, newSink(t)) })
	}
}

// CheckSink checks the rules of [TestSink] without a *testing.T. It returns all
// violations, joined, or nil if there are none. Rules that do not apply to the sink
// count as kept.
func CheckSink(ctx context.Context, sink SinkUnderTest) error {
	var errs []error
	for _, rule := range sinkRules {
		if err := rule.test(ctx, sink); err != nil && !errors.Is(err, errSkipped) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sinkRule is a rule that a sink has to keep.
type sinkRule struct {
	name  string
	check func(*sinkTest)
}

// report fails the test if the sink breaks the rule, and skips it if the rule does not
// apply.
func (r sinkRule) report(tb testing.TB, sink SinkUnderTest) {
	tb.Helper()
	switch err := r.test(tb.Context(), sink); {
	case errors.Is(err, errSkipped):
		tb.Skip(err)
	case err != nil:
		tb.Error(err)
	}
}

// test returns an error if the sink breaks the rule, and errSkipped if the rule does not
// apply.
func (r sinkRule) test(ctx context.Context, sink SinkUnderTest) error {
	if sink.Namespaces == [2]string{} {
		sink.Namespaces = [2]string{metav1.NamespaceDefault, metav1.NamespaceSystem}
	}
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	err := try(func() { r.check(&sinkTest{SinkUnderTest: sink, ctx: ctx}) })
	if err != nil && !errors.Is(err, errSkipped) {
		return fmt.Errorf("eventstest: sink breaks the rule %q: %w", r.name, err)
	}
	return err
}
