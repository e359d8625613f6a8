package apigroup

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/eventclient"
	"github.com/eventseries/eventseries/internal/safelog"
)

// maxNamespaces bounds how many namespaces a [Fallback] remembers. It is as many as a
// cluster can have. A forgotten namespace costs one more request for each verb.
const maxNamespaces = 10_000

// Group writes and lists Events through one API group: [CoreSink] through core/v1,
// events.EventSinkImpl through events.k8s.io/v1.
type Group interface {
	// Create creates event and returns the server's version of it, like Update and Patch.
	Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error)
	// Update replaces event.
	Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error)
	// Patch applies a JSON merge patch to the Event with the namespace and name of event.
	Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error)
	// List returns the Events in a namespace, or in all namespaces, that match opts.
	List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error)
}

// Fallback writes Events through core/v1, which most programs read, if the server permits
// create and patch there, and through events.k8s.io/v1 otherwise. The documentation of
// compat.Sink describes it.
//
// A Fallback is safe for concurrent use. All methods of the zero value and of a nil
// Fallback return an error.
type Fallback struct {
	// Events and Core send the requests to events.k8s.io/v1 and core/v1. Both are required.
	Events, Core Group

	mu sync.Mutex
	// newer says which verbs begin with events.k8s.io/v1, by namespace: core/v1 has denied
	// them, or another verb of their rule.
	newer map[string]choice
	// denied are the requests that both groups have denied, and not permitted since.
	denied map[request]denial
	// loggedCore and loggedEvents are the verbs whose move to a group is logged.
	loggedCore, loggedEvents verbs
}

// choice says which verbs begin with events.k8s.io/v1.
type choice struct {
	verbs verbs
	since time.Time
}

// request is what a role permits or denies, in the resources of both groups.
type request struct {
	verb      verbs
	namespace string
}

// denial says until when only one group is asked again, and how long that took or takes.
type denial struct {
	until time.Time
	wait  time.Duration
}

// Both groups are asked again after as long as a denied series waits for its next request.
const firstDenied, maxDenied = time.Second, 5 * time.Minute

// retryCore is after how long requests begin with core/v1 again: a rule may have been added, or
// an API server that has just started may have denied what it permits.
const retryCore = time.Hour

var errNoGroup = errors.New("apigroup: sink requires clients for events.k8s.io/v1 and core/v1")

// verbs is a set of verbs.
type verbs uint8

const (
	create verbs = 1 << iota
	update
	patch
	list
	allVerbs = create | update | patch | list
)

// String returns the verbs as in the rule of a role.
func (v verbs) String() string {
	var names []string
	for i, name := range []string{"create", "update", "patch", "list"} {
		if v&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// rule returns the verbs that go to the same group as v. A recorder that creates Events also
// patches them, and only core/v1 can patch all fields of an Event that it has created.
func (v verbs) rule() verbs {
	if v&(create|patch) != 0 {
		return create | patch
	}
	return v
}

// Create creates event and returns the server's version of it.
func (f *Fallback) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return try(ctx, f, create, namespaceOf(event), func(g Group) (*eventsv1.Event, error) { return g.Create(ctx, event) })
}

// Update replaces event and returns the server's version of it. The recorder does not
// call Update.
func (f *Fallback) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return try(ctx, f, update, namespaceOf(event), func(g Group) (*eventsv1.Event, error) { return g.Update(ctx, event) })
}

// Patch applies a JSON merge patch (RFC 7386) to the Event with the namespace and name of
// event, and returns the server's version of it.
func (f *Fallback) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return try(ctx, f, patch, namespaceOf(event), func(g Group) (*eventsv1.Event, error) { return g.Patch(ctx, event, data) })
}

// List returns the Events in a namespace that match opts. An empty namespace selects all
// namespaces.
func (f *Fallback) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return try(ctx, f, list, namespace, func(g Group) (*eventsv1.EventList, error) { return g.List(ctx, namespace, opts) })
}

func namespaceOf(event *eventsv1.Event) string {
	if event == nil {
		return "" // the group returns an error
	}
	return event.Namespace
}

// try makes a request through the group with which the verb begins in this namespace, and
// through the other one if the server denies it or does not serve the group, unless both were
// so a moment ago.
func try[T any](ctx context.Context, f *Fallback, verb verbs, namespace string, send func(Group) (T, error)) (T, error) {
	var none T
	if f == nil || f.Events == nil || f.Core == nil {
		return none, errNoGroup
	}
	first, second := f.Core, f.Events
	isNewer, before := f.recall(verb, namespace)
	if isNewer {
		first, second = second, first
	}
	result, firstErr := send(first)
	firstAnswer := answerOf(firstErr)
	switch {
	case firstAnswer == permitted && before.wait > 0:
		f.forgive(verb, namespace)
		return result, firstErr
	case firstAnswer == permitted, firstAnswer == unclear:
		return result, firstErr
	case time.Now().Before(before.until):
		return none, firstErr
	}
	eventclient.Charge(ctx)
	result, secondErr := send(second)
	secondAnswer := answerOf(secondErr)
	switch secondAnswer {
	case permitted:
		f.forgive(verb, namespace)
		f.move(ctx, verb, namespace, !isNewer, firstAnswer, firstErr)
		return result, secondErr
	case unclear:
		// The server may have carried it out, so the first error would mislead the caller.
		return result, secondErr
	case denied, unserved:
		// Neither group accepts the request.
	}

	coreErr, eventsErr := firstErr, secondErr
	coreAnswer, eventsAnswer := firstAnswer, secondAnswer
	if isNewer {
		coreErr, eventsErr = secondErr, firstErr
		coreAnswer, eventsAnswer = secondAnswer, firstAnswer
	}
	onlyEvents, onlyCore := coreAnswer == unserved && eventsAnswer == denied, coreAnswer == denied && eventsAnswer == unserved
	f.deny(verb, namespace, before, (isNewer || onlyEvents) && !onlyCore)
	if onlyEvents {
		return none, eventsErr // only a rule for events.k8s.io/v1 can help
	}
	return none, coreErr
}

// recall returns whether the next request begins with events.k8s.io/v1, and the denial of the
// latest one by both groups, which is zero if there was none.
func (f *Fallback) recall(verb verbs, namespace string) (isNewer bool, d denial) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newer := f.newer[namespace]
	return newer.verbs&verb != 0 && time.Since(newer.since) < retryCore, f.denied[request{verb, namespace}]
}

// deny remembers that both groups deny a request, and which one is asked alone. before is the
// denial before that.
func (f *Fallback) deny(verb verbs, namespace string, before denial, toNewer bool) {
	now := time.Now()
	wait := min(2*before.wait, maxDenied)
	if wait == 0 || now.Sub(before.until) > maxDenied {
		wait = firstDenied
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	newer := f.newer[namespace].verbs &^ verb.rule()
	if toNewer {
		newer |= verb.rule()
	}
	if newer != f.newer[namespace].verbs {
		f.set(namespace, newer)
	}
	f.denied = remember(f.denied, request{verb, namespace}, denial{now.Add(wait), wait})
}

// forgive forgets that both groups have denied a request.
func (f *Fallback) forgive(verb verbs, namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.denied, request{verb, namespace})
}

// move makes a verb, and those of its rule, begin with the group that permits it, and logs
// that once for each rule. answer and err are the response of the other group.
func (f *Fallback) move(ctx context.Context, verb verbs, namespace string, toNewer bool, answer answer, err error) {
	rule := verb.rule()
	if answer == unserved {
		rule = allVerbs // no role changes that
	}
	if !f.choose(verb, namespace, toNewer, rule) {
		return
	}
	logger := safelog.Guard(klog.FromContext(ctx))
	switch {
	case !toNewer:
		logger.V(2).Info("Using core/v1, because the server does not permit events.k8s.io/v1", "verbs", rule.String(), "namespace", namespace, "err", err)
	case answer == unserved:
		logger.Info("Using events.k8s.io/v1, because the server does not serve core/v1", "err", err)
	case verb == list: // the recorder does without, and programs read the same
		logger.V(2).Info("Listing through events.k8s.io/v1, because core/v1 is denied. To change that, grant the verb",
			"verbs", rule.String(), "resource", "events", "namespace", namespace, "err", err)
	default:
		logger.Info("Using events.k8s.io/v1, whose Events many programs show without times and counts, because core/v1 is denied. To change that, grant the verbs",
			"verbs", rule.String(), "resource", "events", "namespace", namespace, "err", err)
	}
}

// choose changes the group with which the verbs of a rule begin, and reports whether to log
// that.
func (f *Fallback) choose(verb verbs, namespace string, toNewer bool, rule verbs) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	logged, newer := &f.loggedCore, f.newer[namespace].verbs&^verb.rule()
	if toNewer {
		logged, newer = &f.loggedEvents, newer|verb.rule()
	}
	f.set(namespace, newer)
	news = *logged&verb == 0
	*logged |= rule
	return news
}

// set replaces the verbs of a namespace that begin with events.k8s.io/v1.
func (f *Fallback) set(namespace string, newer verbs) {
	if newer == 0 {
		delete(f.newer, namespace)
		return
	}
	f.newer = remember(f.newer, namespace, choice{newer, time.Now()})
}

// remember sets the value of a key. If there is no room, it forgets another key.
func remember[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = make(map[K]V)
	}
	if _, ok := m[key]; !ok && len(m) >= maxNamespaces {
		for other := range m {
			delete(m, other)
			break
		}
	}
	m[key] = value
	return m
}

// answer is what the response to a request says about the API group.
type answer int

const (
	// unclear is no response, or one that does not tell whether the server permits the
	// request: an error of the server, a push-back, or invalid credentials.
	unclear answer = iota
	// permitted means that the server has carried out the request, or has rejected it for
	// a reason that holds in both groups.
	permitted
	// denied is a 403: from RBAC, a quota or a webhook.
	denied
	// unserved means that the server does not serve the group.
	unserved
)

// answerOf returns what the error of a request says about the API group.
func answerOf(err error) answer {
	if err == nil {
		return permitted
	}
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return unclear
	}
	status := response.Status()
	page := apierrors.IsUnexpectedServerError(err) // not a Status
	switch {
	case status.Code == http.StatusForbidden && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return denied
	case status.Code == http.StatusNotFound && (page || status.Details == nil || status.Details.Name == ""):
		// kube-apiserver responds with a page. Other servers may send a Status, which
		// names neither an Event nor a namespace.
		return unserved
	case page, status.Code < 400, status.Code >= 500, status.Code == http.StatusUnauthorized,
		status.Code == http.StatusRequestTimeout, status.Code == http.StatusTooManyRequests:
		return unclear
	default:
		return permitted
	}
}
