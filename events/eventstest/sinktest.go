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

// SinkUnderTest is a sink for TestSink, and what has to be known of it.
type SinkUnderTest struct {
	// Sink is what is tested. If it is an events.EventLister as well, so is its List.
	Sink events.EventSink

	// Namespaces are two that the sink can write to. If they are empty, "default"
	// and "kube-system", which every cluster has. What is written there stays.
	Namespaces [2]string

	// Unversioned says that what the sink writes to knows no resourceVersions, as
	// client-go's fake clientset. What is about them is not tested then. Such a sink is
	// not for events.Options.Scope SameController.
	Unversioned bool

	// Stall, if set, keeps whatever the sink writes to from answering, until the
	// function that it returns is called. Without it nobody can test whether a call
	// ends with its context.
	Stall func() (resume func())
}

// What bounds the wait for a sink.
const (
	// ruleTimeout is how long all calls for one rule may take.
	ruleTimeout = time.Minute
	// stallTime is how long a call waits for an answer that does not come.
	stallTime = 100 * time.Millisecond
	// returnGrace is how long a call may take to return when its context has ended.
	returnGrace = 10 * time.Second
)

// errSkipped is what a rule returns that cannot be tested with a sink.
var errSkipped = errors.New("not to be tested")

// TestSink tests whether a sink is one that a Broadcaster can work with. Each rule
// is a subtest with a sink of its own, from newSink. The rules, and why:
//
//   - Create writes the whole Event: a process that is started again compares all
//     that tells series apart with what it finds, and people read the rest. That
//     includes a name of 253 bytes and a note of 1024.
//   - Times are kept to the microsecond: by its eventTime a recorder knows the Event
//     that it created itself, when the answer to the create was lost.
//   - Create takes a series: what has occurred often before it could be written is
//     created as a series at once.
//   - Create answers with the Event and its resourceVersion: where processes share
//     series, that is the condition of the next patch.
//   - Create of a name that stands is AlreadyExists (apierrors.IsAlreadyExists), and
//     leaves what stands there as it is: that is how the Event of an earlier process
//     is found.
//   - A namespace is respected: the same name in another one is another Event.
//   - An empty patch shows the whole Event and changes nothing: that is how it is
//     read, by recorders that may only create and patch.
//   - A patch sets the series, answers with the Event as it is then, and leaves the rest
//     as it is.
//   - A patch merges annotations: null takes one away, and those that are not named
//     stay. They may be somebody else's.
//   - A patch that is sent twice does no harm: the recorder sends it again when the
//     answer was lost.
//   - A patch writes nothing but itself: the Event that comes with it says where, and
//     may be older or newer than what is there.
//   - A patch of an Event that is not there is NotFound (apierrors.IsNotFound), and
//     creates none: then the recorder creates it anew.
//   - A patch of another resourceVersion than the Event has is Conflict
//     (apierrors.IsConflict), and changes nothing: or two processes would undo each
//     other's counts.
//   - What a call is given is left as it is: it is the caller's.
//   - Calls may be made at the same time, about different Events and about the same
//     one: the broadcaster has several workers, and there may be other processes.
//   - A call whose context has ended is carried out or an error: what is lost
//     without an error is lost for good.
//   - A call returns when its context ends (see SinkUnderTest.Stall): its series waits
//     for it, and so does Shutdown.
//   - List, if there is one, finds every Event of a namespace, and of all, that is
//     selected, whole, and in pages that come to an end. It may find more than is
//     selected: what it does not find, nobody closes.
//
// An error that is not one of the API (apierrors.APIStatus) is trouble on the way, to
// the broadcaster; it tries again.
func TestSink(t *testing.T, newSink func(t *testing.T) SinkUnderTest) {
	t.Helper()
	for _, rule := range sinkRules {
		t.Run(rule.name, func(t *testing.T) { rule.report(t, newSink(t)) })
	}
}

// CheckSink does what TestSink does, for those who have no *testing.T, and returns
// what was found, all of it, or nil.
func CheckSink(ctx context.Context, sink SinkUnderTest) error {
	var errs []error
	for _, rule := range sinkRules {
		if err := rule.test(ctx, sink); err != nil && !errors.Is(err, errSkipped) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sinkRule is one thing that a sink has to keep to.
type sinkRule struct {
	name  string
	check func(ctx context.Context, s *sinkTest) error
}

// report fails the test if sink does not keep to the rule, and skips it if that
// cannot be tested.
func (r sinkRule) report(tb testing.TB, sink SinkUnderTest) {
	tb.Helper()
	switch err := r.test(tb.Context(), sink); {
	case errors.Is(err, errSkipped):
		tb.Skip(err)
	case err != nil:
		tb.Error(err)
	}
}

// test returns an error if sink does not keep to the rule.
func (r sinkRule) test(ctx context.Context, sink SinkUnderTest) error {
	if sink.Namespaces == [2]string{} {
		sink.Namespaces = [2]string{metav1.NamespaceDefault, metav1.NamespaceSystem}
	}
	ctx, cancel := context.WithTimeout(ctx, ruleTimeout)
	defer cancel()
	err := r.check(ctx, &sinkTest{SinkUnderTest: sink})
	if err != nil && !errors.Is(err, errSkipped) {
		return fmt.Errorf("eventstest: sink breaks the rule %q: %w", r.name, err)
	}
	return err
}
