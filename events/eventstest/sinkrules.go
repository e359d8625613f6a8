package eventstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/series"
)

// sinkRules are the rules of TestSink. Their names are the names of its subtests.
var sinkRules = []sinkRule{
	{"Create writes the whole Event", createWritesEverything},
	{"times keep their microseconds", timesKeepMicroseconds},
	{"Create accepts a series", createAcceptsSeries},
	{"Create returns the Event", createReturnsEvent},
	{"Create of an existing name returns AlreadyExists", createOfExistingName},
	{"namespaces are separate", namespacesAreSeparate},
	{"an empty patch returns the Event", emptyPatchReturnsEvent},
	{"a patch sets the series", patchSetsSeries},
	{"a patch merges labels and annotations", patchMergesMetadata},
	{"a patch is idempotent", patchIsIdempotent},
	{"a patch changes nothing else", patchChangesNothingElse},
	{"a patch of a missing Event returns NotFound", patchOfMissingEvent},
	{"a patch with a stale resourceVersion returns Conflict", patchWithStaleVersion},
	{"calls do not modify their arguments", argumentsStayUnmodified},
	{"calls are safe for concurrent use", callsAreConcurrent},
	{"a call after the end of its context takes effect or returns an error", callAfterContext},
	{"a call returns when its context ends", callReturnsWithContext},
	{"what the sink adds stays", additionsStay},
	{"List returns every selected Event", listReturnsAll},
	{"List returns whole Events", listReturnsWholeEvents},
	{"List has a last page", listHasLastPage},
}

// sinkTest checks one rule. Its methods stop the check with fail when the sink does not
// do what they expect.
type sinkTest struct {
	SinkUnderTest
	ctx context.Context
}

// failure is the panic of fail.
type failure struct{ err error }

// fail stops the check with an error.
func (s *sinkTest) fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// skip stops the check because it does not apply to the sink.
func (s *sinkTest) skip(reason string) { s.fail("%w: %s", errSkipped, reason) }

// try runs a check and returns the error with which it failed.
func try(check func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.err
		default:
			panic(p)
		}
	}()
	check()
	return nil
}

const (
	// stateKey is the key of a label and of an annotation that patches set.
	stateKey = series.AnnotationPrefix + "state"
	// removedKey is the key of a label and of an annotation that patches remove.
	removedKey = "example.com/removed"
)

// begin is the time of the first occurrence. It uses every digit that an Event has.
var begin = time.Date(2026, time.March, 1, 12, 34, 56, 123456000, time.UTC)

// event returns an Event that the sink does not know. It has every field that a
// recorder sets, except series.
func (s *sinkTest) event() *eventsv1.Event {
	namespace := s.Namespaces[0]
	id := rand.String(16)
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        "sink-test." + id,
			Labels:      map[string]string{"example.com/kept": "kept", removedKey: "removed"},
			Annotations: map[string]string{"example.com/kept": "kept", removedKey: "to be removed"},
		},
		EventTime:           metav1.NewMicroTime(begin),
		ReportingController: "example.com/sink-test-" + id,
		ReportingInstance:   "sink-test-0",
		Action:              "TestSink",
		Reason:              "Tested",
		Regarding: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "sink-test", UID: "11111111-2222-4333-8444-555555555555", FieldPath: "spec.containers{main}",
		},
		Related: &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node", UID: "66666666-7777-4888-8999-000000000000"},
		Note:    "95% of the sink was tested: “äöü” \n\t<&>",
		Type:    corev1.EventTypeWarning,
	}
}

// create creates an Event and returns the response.
func (s *sinkTest) create(event *eventsv1.Event) *eventsv1.Event {
	created, err := s.Sink.Create(s.ctx, event.DeepCopy())
	if err != nil {
		s.fail("Create of %s: %w", event.Name, err)
	}
	return created
}

// patch patches an Event and returns the response.
func (s *sinkTest) patch(event *eventsv1.Event, patch string) *eventsv1.Event {
	patched, err := s.Sink.Patch(s.ctx, event.DeepCopy(), []byte(patch))
	if err != nil {
		s.fail("Patch of %s with %s: %w", event.Name, patch, err)
	}
	if patched == nil {
		s.fail("Patch of %s with %s returns neither an Event nor an error", event.Name, patch)
	}
	return patched
}

// look returns the Event with the namespace and the name of event. Like a recorder, it
// sends an empty patch, without anything else of the Event.
func (s *sinkTest) look(event *eventsv1.Event) *eventsv1.Event {
	return s.patch(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: event.Namespace, Name: event.Name}}, `{}`)
}

// expect checks that the server has want.
func (s *sinkTest) expect(want *eventsv1.Event) { s.same("an empty patch returns", want, s.look(want)) }

// same checks that got says what want says. It ignores what servers add, and the
// deprecated fields, which a sink may fill in.
func (s *sinkTest) same(what string, want, got *eventsv1.Event) {
	if got == nil {
		s.fail("%s no Event", what)
	}
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"namespace", want.Namespace, got.Namespace},
		{"name", want.Name, got.Name},
		{"labels", want.Labels, s.withoutAdditions(got.Labels)},
		{"annotations", want.Annotations, s.withoutAdditions(got.Annotations)},
		{"eventTime", format(want.EventTime), format(got.EventTime)},
		{"series", describeSeries(want), describeSeries(got)},
		{"reportingController", want.ReportingController, got.ReportingController},
		{"reportingInstance", want.ReportingInstance, got.ReportingInstance},
		{"action", want.Action, got.Action},
		{"reason", want.Reason, got.Reason},
		{"regarding", series.ReferenceOf(&want.Regarding), series.ReferenceOf(&got.Regarding)},
		{"related", series.ReferenceOf(want.Related), series.ReferenceOf(got.Related)},
		{"note", want.Note, got.Note},
		{"type", want.Type, got.Type},
	} {
		if !equality.Semantic.DeepEqual(f.want, f.got) {
			s.fail("%s %s %s, want %s", what, f.name, abbreviate(f.got), abbreviate(f.want))
		}
	}
}

// withoutAdditions returns labels or annotations without those that the sink adds, and the first time that one for
// core/v1 keeps.
func (s *sinkTest) withoutAdditions(values map[string]string) map[string]string {
	values = maps.Clone(values)
	delete(values, series.AnnotationEventTime)
	for _, key := range s.Adds {
		delete(values, key)
	}
	return values
}

// abbreviate returns a value for people, without the end of a long string.
func abbreviate(value any) string {
	if s, ok := value.(string); ok {
		return fmt.Sprintf("%q", eventtext.Cut(s, maxShown))
	}
	return fmt.Sprintf("%+v", value)
}

func format(t metav1.MicroTime) string { return t.UTC().Format(time.RFC3339Nano) }

func describeSeries(event *eventsv1.Event) string {
	if event.Series == nil {
		return "none"
	}
	return fmt.Sprintf("x%d until %s", event.Series.Count, format(event.Series.LastObservedTime))
}

// seriesPatch returns a patch like those of a recorder. It has no resourceVersion if
// version is empty.
func seriesPatch(version string, count int32, last time.Time) string {
	state := map[string]string{stateKey: series.Ongoing.String()}
	metadata := map[string]any{"labels": state, "annotations": state}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": metadata,
		"series":   &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(last)},
	})
	if err != nil {
		panic(err) // all of it can be marshalled
	}
	return string(patch)
}

// withSeries returns what seriesPatch makes of event.
func withSeries(event *eventsv1.Event, count int32, last time.Time) *eventsv1.Event {
	event = event.DeepCopy()
	event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(last)}
	metav1.SetMetaDataLabel(&event.ObjectMeta, stateKey, series.Ongoing.String())
	metav1.SetMetaDataAnnotation(&event.ObjectMeta, stateKey, series.Ongoing.String())
	return event
}

func createWritesEverything(s *sinkTest) {
	long := s.event()
	long.Name = strings.Repeat("o", validation.DNS1123SubdomainMaxLength-len(long.Name)) + long.Name
	long.Note = strings.Repeat("é", series.MaxNoteBytes/len("é"))
	long.Related, long.Labels, long.Annotations = nil, nil, nil
	for _, event := range []*eventsv1.Event{s.event(), long} {
		s.create(event)
		s.expect(event)
	}
}

func timesKeepMicroseconds(s *sinkTest) {
	event := s.event()
	if created := s.create(event); created != nil && !created.EventTime.Equal(&event.EventTime) {
		s.fail("Create returns eventTime %s, want %s", format(created.EventTime), format(event.EventTime))
	}
	last := begin.Add(1234567 * time.Microsecond)
	patched := s.patch(event, seriesPatch("", 2, last))
	switch {
	case !patched.EventTime.Equal(&event.EventTime):
		s.fail("Patch returns eventTime %s, want %s", format(patched.EventTime), format(event.EventTime))
	case patched.Series == nil || !patched.Series.LastObservedTime.Time.Equal(last):
		s.fail("Patch returns series %s, want lastObservedTime %v", describeSeries(patched), last)
	}
}

func createAcceptsSeries(s *sinkTest) {
	event := withSeries(s.event(), 57, begin.Add(time.Second))
	s.create(event)
	s.expect(event)
}

func createReturnsEvent(s *sinkTest) {
	event := s.event()
	created := s.create(event)
	s.same("Create returns", event, created)
	if s.Unversioned {
		return
	}
	if created.ResourceVersion == "" {
		s.fail("Create returns no resourceVersion")
	}
	if looked := s.look(event); looked.ResourceVersion != created.ResourceVersion {
		s.fail("Create returns resourceVersion %q, an empty patch returns %q", created.ResourceVersion, looked.ResourceVersion)
	}
}

func createOfExistingName(s *sinkTest) {
	event := s.event()
	s.create(event)
	other := event.DeepCopy()
	other.Note, other.Reason = "another one", "Other"
	if _, err := s.Sink.Create(s.ctx, other); !apierrors.IsAlreadyExists(err) {
		s.fail("a second Create of %s returns %w, want AlreadyExists", event.Name, orNil(err))
	}
	s.expect(event)
}

func namespacesAreSeparate(s *sinkTest) {
	one := s.event()
	other := one.DeepCopy()
	other.Namespace, other.Regarding.Namespace = s.Namespaces[1], s.Namespaces[1]
	other.Note = "the one in " + other.Namespace
	s.create(one)
	s.create(other)
	s.patch(other, seriesPatch("", 3, begin))
	s.expect(one)
	s.expect(withSeries(other, 3, begin))
}

func emptyPatchReturnsEvent(s *sinkTest) {
	event := withSeries(s.event(), 2, begin)
	created := s.create(event)
	for range 2 {
		looked := s.look(event)
		s.same("an empty patch returns", event, looked)
		if !s.Unversioned && created != nil && looked.ResourceVersion != created.ResourceVersion {
			s.fail("an empty patch changes the resourceVersion from %q to %q", created.ResourceVersion, looked.ResourceVersion)
		}
	}
}

func patchSetsSeries(s *sinkTest) {
	event := s.event()
	s.create(event)
	for count := int32(2); count < 5; count++ {
		last := begin.Add(time.Duration(count) * time.Minute)
		want := withSeries(event, count, last)
		s.same("Patch returns", want, s.patch(event, seriesPatch("", count, last)))
		s.expect(want)
	}
}

func patchMergesMetadata(s *sinkTest) {
	event := withSeries(s.event(), 2, begin)
	s.create(event)
	want := event.DeepCopy()
	for _, f := range []struct {
		name   string
		values map[string]string
		add    string
	}{{"labels", want.Labels, "new"}, {"annotations", want.Annotations, "<new>"}} {
		delete(f.values, removedKey)
		f.values["example.com/new"] = f.add
		patch := fmt.Sprintf(`{"metadata":{%q:{%q:null,"example.com/new":%q}}}`, f.name, removedKey, f.add)
		s.same("Patch returns", want, s.patch(event, patch))
		s.expect(want)
	}
}

func patchIsIdempotent(s *sinkTest) {
	event := s.event()
	s.create(event)
	for range 3 {
		s.patch(event, seriesPatch("", 7, begin))
	}
	s.expect(withSeries(event, 7, begin))
}

func patchChangesNothingElse(s *sinkTest) {
	event := s.event()
	s.create(event)
	other := withSeries(event, 99, begin.Add(time.Hour))
	other.Note, other.Reason, other.ResourceVersion = "another note", "Other", ""
	other.Labels = map[string]string{"example.com/other": "ignored"}
	other.Annotations = map[string]string{"example.com/other": "ignored"}
	s.patch(other, `{"metadata":{"annotations":{"example.com/new":"new"}}}`)
	want := event.DeepCopy()
	want.Annotations["example.com/new"] = "new"
	s.expect(want)
	s.patch(other, seriesPatch("", 5, begin))
	s.expect(withSeries(want, 5, begin))
}

func patchOfMissingEvent(s *sinkTest) {
	event := s.event()
	for _, patch := range []string{`{}`, seriesPatch("", 2, begin), `{}`} {
		if _, err := s.Sink.Patch(s.ctx, event.DeepCopy(), []byte(patch)); !apierrors.IsNotFound(err) {
			s.fail("Patch of %s, which does not exist, with %s returns %w, want NotFound", event.Name, patch, orNil(err))
		}
	}
	s.create(event)
}

func patchWithStaleVersion(s *sinkTest) {
	if s.Unversioned {
		s.skip("SinkUnderTest.Unversioned is set")
	}
	event := s.event()
	s.create(event)
	stale := s.look(event).ResourceVersion
	current := s.patch(event, seriesPatch(stale, 2, begin)).ResourceVersion
	_, err := s.Sink.Patch(s.ctx, event.DeepCopy(), []byte(seriesPatch(stale, 3, begin)))
	if !apierrors.IsConflict(err) {
		s.fail("Patch with resourceVersion %q of an Event with %q returns %w, want Conflict", stale, current, orNil(err))
	}
	s.expect(withSeries(event, 2, begin))
}

func argumentsStayUnmodified(s *sinkTest) {
	event := s.event()
	before := event.DeepCopy()
	patch := []byte(seriesPatch("", 2, begin))
	sent := bytes.Clone(patch)
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"Create", func() error { _, err := s.Sink.Create(s.ctx, event); return err }},
		{"Patch", func() error { _, err := s.Sink.Patch(s.ctx, event, sent); return err }},
	} {
		if err := call.do(); err != nil {
			s.fail("%s of %s: %w", call.name, event.Name, err)
		}
		if !equality.Semantic.DeepEqual(before, event) {
			s.fail("%s modifies its Event: from %v to %v", call.name, before, event)
		}
	}
	if !bytes.Equal(patch, sent) {
		s.fail("Patch modifies its patch: from %s to %s", patch, sent)
	}
}

func callsAreConcurrent(s *sinkTest) {
	const callers, patches = 8, 5
	shared := s.event()
	own := make([]*eventsv1.Event, callers)
	errs := make([]error, callers)
	var created atomic.Int32
	var wg sync.WaitGroup
	call := func(i int) {
		_, err := s.Sink.Create(s.ctx, shared.DeepCopy())
		switch {
		case err == nil:
			created.Add(1)
		case !apierrors.IsAlreadyExists(err):
			s.fail("concurrent Create of %s: %w, want AlreadyExists", shared.Name, err)
		}
		s.create(own[i])
		for n := range int32(patches) {
			s.patch(own[i], seriesPatch("", 2+n, begin))
		}
	}
	for i := range callers {
		own[i] = s.event()
		wg.Go(func() { errs[i] = try(func() { call(i) }) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.fail("%w", err)
	}
	for _, event := range own {
		s.expect(withSeries(event, 1+patches, begin))
	}
	if n := created.Load(); n != 1 {
		s.fail("%d of %d concurrent Creates of %s succeeded, want 1", n, callers, shared.Name)
	}
	s.expect(shared)
}

func callAfterContext(s *sinkTest) {
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	event := s.event()
	if _, err := s.Sink.Create(ended, event.DeepCopy()); err == nil {
		s.expect(event)
	}
	patched := s.event()
	s.create(patched)
	if _, err := s.Sink.Patch(ended, patched.DeepCopy(), []byte(seriesPatch("", 2, begin))); err == nil {
		s.expect(withSeries(patched, 2, begin))
	}
}

func callReturnsWithContext(s *sinkTest) {
	if s.Stall == nil {
		s.skip("SinkUnderTest.Stall is not set")
	}
	event := s.event()
	s.create(event)
	s.stalled("Create", func(ctx context.Context) error { _, err := s.Sink.Create(ctx, s.event()); return err })
	s.stalled("Patch", func(ctx context.Context) error {
		_, err := s.Sink.Patch(ctx, event.DeepCopy(), []byte(seriesPatch("", 2, begin)))
		return err
	})
	if lister, ok := s.Sink.(events.EventLister); ok {
		s.stalled("List", func(ctx context.Context) error {
			_, err := lister.List(ctx, event.Namespace, metav1.ListOptions{})
			return err
		})
	}
}

// stalled makes a call to which the server does not respond, and ends its context.
func (s *sinkTest) stalled(name string, call func(context.Context) error) {
	// The context ends late enough for the call to get as far as it can. How far that is
	// makes no difference to a good sink.
	ctx, cancel := context.WithTimeout(s.ctx, stallTime)
	defer cancel()
	resume := s.Stall()
	returned := make(chan error, 1)
	go func() { returned <- call(ctx) }()
	timer := time.NewTimer(stallTime + returnGrace)
	defer timer.Stop()
	select {
	case err := <-returned:
		resume()
		if err == nil {
			s.fail("%s returns no error when the server does not respond", name)
		}
	case <-timer.C:
		resume()
		err := <-returned // leave no goroutine behind
		s.fail("%s does not return within %v after its context ended (after the response, it returned: %w)", name, returnGrace, orNil(err))
	}
}

func additionsStay(s *sinkTest) {
	if len(s.Adds) == 0 {
		s.skip("SinkUnderTest.Adds is not set")
	}
	event := s.event()
	s.create(event)
	created := s.look(event)
	changed := []struct {
		after string
		event *eventsv1.Event
	}{
		{"a series", s.patch(event, seriesPatch("", 2, begin))},
		{"a label", s.patch(event, `{"metadata":{"labels":{"example.com/new":"new"},"annotations":{"example.com/new":"new"}}}`)},
		{"nothing", s.look(event)},
	}
	for _, key := range s.Adds {
		if strings.HasPrefix(key, series.AnnotationPrefix) {
			s.fail("the sink adds %s: recorders need all labels and annotations that begin with %s", key, series.AnnotationPrefix)
		}
		label, isLabel := created.Labels[key]
		annotation, isAnnotation := created.Annotations[key]
		if !isLabel && !isAnnotation {
			s.fail("Create adds no label and no annotation %s", key)
		}
		for _, change := range changed {
			if got := change.event.Labels[key]; got != label {
				s.fail("a patch with %s changes the label %s from %q to %q", change.after, key, label, got)
			}
			if got := change.event.Annotations[key]; got != annotation {
				s.fail("a patch with %s changes the annotation %s from %q to %q", change.after, key, annotation, got)
			}
		}
	}
}

// lister returns the sink as a lister, and three new Events of one controller in both
// namespaces, by name.
func (s *sinkTest) lister() (events.EventLister, map[string]*eventsv1.Event) {
	lister, ok := s.Sink.(events.EventLister)
	if !ok {
		s.skip("the sink is not an events.EventLister")
	}
	controller := s.event().ReportingController
	created := make(map[string]*eventsv1.Event)
	for i := range 3 {
		event := withSeries(s.event(), int32(2+i), begin)
		event.ReportingController = controller
		if i == 2 {
			event.Namespace, event.Regarding.Namespace = s.Namespaces[1], s.Namespaces[1]
		}
		s.create(event)
		created[event.Name] = event
	}
	return lister, created
}

// maxPages is the number of pages after which List is expected to have ended.
const maxPages = 10_000

// list lists the Events of the controller of created in a namespace page by page, with
// the selectors of a recorder. It checks that those of created in this namespace are
// among them, and returns these.
func (s *sinkTest) list(lister events.EventLister, created map[string]*eventsv1.Event, namespace string, limit int64) []*eventsv1.Event {
	opts := metav1.ListOptions{Limit: limit, LabelSelector: series.LabelState + " notin (Finished,Unknown)"}
	for _, event := range created {
		opts.FieldSelector = fields.OneTermEqualSelector("reportingController", event.ReportingController).String()
	}
	found := make(map[string]*eventsv1.Event)
	for n := 0; n == 0 || opts.Continue != ""; n++ {
		if n == maxPages {
			s.fail("List of namespace %q has more than %d pages", namespace, maxPages)
		}
		page, err := lister.List(s.ctx, namespace, opts)
		if err != nil {
			s.fail("List of namespace %q: %w", namespace, err)
		}
		if page == nil {
			s.fail("List of namespace %q returns neither a list nor an error", namespace)
		}
		for i := range page.Items {
			found[page.Items[i].Name] = &page.Items[i]
		}
		opts.Continue = page.Continue
	}
	var list []*eventsv1.Event
	for name, event := range created {
		if namespace != metav1.NamespaceAll && namespace != event.Namespace {
			continue
		}
		if found[name] == nil {
			s.fail("List of namespace %q, in pages of %d, does not return %s", namespace, limit, name)
		}
		list = append(list, found[name])
	}
	return list
}

func listReturnsAll(s *sinkTest) {
	lister, created := s.lister()
	for _, namespace := range append(s.Namespaces[:], metav1.NamespaceAll) {
		s.list(lister, created, namespace, 0)
	}
}

func listReturnsWholeEvents(s *sinkTest) {
	lister, created := s.lister()
	for _, event := range s.list(lister, created, metav1.NamespaceAll, 0) {
		s.same("List returns", created[event.Name], event)
		if !s.Unversioned && event.ResourceVersion == "" {
			s.fail("List returns %s without a resourceVersion", event.Name)
		}
	}
}

func listHasLastPage(s *sinkTest) {
	lister, created := s.lister()
	s.list(lister, created, metav1.NamespaceAll, 2)
}

// orNil returns err, or an error that says that there is none.
func orNil(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}
