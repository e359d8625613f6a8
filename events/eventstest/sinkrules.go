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
	"github.com/eventseries/eventseries/internal/text"
	"github.com/eventseries/eventseries/series"
)

// sinkRules are what TestSink tests. Their names are those of its subtests.
var sinkRules = []sinkRule{
	{"Create writes the whole Event", createWritesAll},
	{"times are kept to the microsecond", timesAreKept},
	{"Create takes a series", createTakesSeries},
	{"Create answers with the Event", createAnswers},
	{"Create of a name that stands is AlreadyExists", createFindsWhatStands},
	{"a namespace is respected", namespacesAreApart},
	{"an empty patch shows the Event", emptyPatchShows},
	{"a patch sets the series", patchSetsSeries},
	{"a patch merges annotations", patchMergesAnnotations},
	{"a patch that is sent twice does no harm", patchTwice},
	{"a patch writes nothing but itself", patchWritesItself},
	{"a patch of what is not there is NotFound", patchOfNothing},
	{"a patch of another resourceVersion is Conflict", patchOfAnotherVersion},
	{"what a call is given is left as it is", argumentsAreLeft},
	{"calls may be made at the same time", callsAreConcurrent},
	{"a call whose context has ended is carried out or an error", endedContext},
	{"a call returns when its context ends", stalledCall},
	{"List finds every Event that is selected", listFinds},
	{"List shows the whole Event", listShowsAll},
	{"List has pages that come to an end", listEnds},
}

// sinkTest is a sink, and what the rules do with it.
type sinkTest struct{ SinkUnderTest }

// begin is when things occur, with all digits that an Event has.
var begin = time.Date(2026, time.March, 1, 12, 34, 56, 123456000, time.UTC)

// event returns an Event that no sink has seen, with all fields that a recorder
// sets but series.
func (s *sinkTest) event() *eventsv1.Event {
	namespace := s.Namespaces[0]
	id := rand.String(16)
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        "sink-test." + id,
			Annotations: map[string]string{"example.com/kept": "kept", "example.com/gone": "to be gone"},
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

// create creates an event, which must work, and returns the answer.
func (s *sinkTest) create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	created, err := s.Sink.Create(ctx, event.DeepCopy())
	if err != nil {
		return nil, fmt.Errorf("Create of %s: %w", event.Name, err)
	}
	return created, nil
}

// patch patches an event, which must work, and returns the answer.
func (s *sinkTest) patch(ctx context.Context, event *eventsv1.Event, patch string) (*eventsv1.Event, error) {
	patched, err := s.Sink.Patch(ctx, event.DeepCopy(), []byte(patch))
	if err != nil {
		return nil, fmt.Errorf("Patch of %s with %s: %w", event.Name, patch, err)
	}
	if patched == nil {
		return nil, fmt.Errorf("Patch of %s with %s answers with no Event and no error", event.Name, patch)
	}
	return patched, nil
}

// expect looks at what there is under the name of want, and returns an error if
// that is anything else.
func (s *sinkTest) expect(ctx context.Context, want *eventsv1.Event) error {
	got, err := s.patch(ctx, want, `{}`)
	if err != nil {
		return err
	}
	return differ("an empty patch shows", want, got)
}

// seriesPatch is what a recorder sends: series and annotations.
func seriesPatch(version string, count int32, last time.Time) string {
	type metadata struct {
		ResourceVersion string            `json:"resourceVersion,omitempty"`
		Annotations     map[string]string `json:"annotations"`
	}
	patch, err := json.Marshal(struct {
		Metadata metadata              `json:"metadata"`
		Series   *eventsv1.EventSeries `json:"series"`
	}{
		metadata{version, map[string]string{series.AnnotationState: series.Ongoing.String()}},
		&eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(last)},
	})
	if err != nil {
		panic(err) // there is nothing in it that cannot be marshalled
	}
	return string(patch)
}

// withSeries returns event as it is after seriesPatch.
func withSeries(event *eventsv1.Event, count int32, last time.Time) *eventsv1.Event {
	event = event.DeepCopy()
	event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(last)}
	metav1.SetMetaDataAnnotation(&event.ObjectMeta, series.AnnotationState, series.Ongoing.String())
	return event
}

// differ returns an error if got does not say what want does. What a server has of
// its own does not count, and neither do the deprecated fields: a sink may fill
// them in.
func differ(what string, want, got *eventsv1.Event) error {
	if got == nil {
		return fmt.Errorf("%s no Event", what)
	}
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"namespace", want.Namespace, got.Namespace},
		{"name", want.Name, got.Name},
		{"annotations", want.Annotations, got.Annotations},
		{"eventTime", want.EventTime.UTC().Format(time.RFC3339Nano), got.EventTime.UTC().Format(time.RFC3339Nano)},
		{"series", seriesOf(want), seriesOf(got)},
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
			return fmt.Errorf("%s %s %s, want %s", what, f.name, shown(f.got), shown(f.want))
		}
	}
	return nil
}

// shown returns a value for people. What is long is cut.
func shown(value any) string {
	if s, ok := value.(string); ok {
		return fmt.Sprintf("%q", text.Cut(s, maxShown))
	}
	return fmt.Sprintf("%+v", value)
}

func seriesOf(event *eventsv1.Event) string {
	if event.Series == nil {
		return "none"
	}
	return fmt.Sprintf("x%d until %s", event.Series.Count, event.Series.LastObservedTime.UTC().Format(time.RFC3339Nano))
}

func createWritesAll(ctx context.Context, s *sinkTest) error {
	event := s.event()
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	if err := s.expect(ctx, event); err != nil {
		return err
	}
	long := s.event()
	long.Name = strings.Repeat("o", validation.DNS1123SubdomainMaxLength-len(long.Name)) + long.Name
	long.Note = strings.Repeat("é", series.MaxNoteBytes/len("é"))
	long.Related, long.Annotations = nil, nil
	if _, err := s.create(ctx, long); err != nil {
		return err
	}
	return s.expect(ctx, long)
}

func timesAreKept(ctx context.Context, s *sinkTest) error {
	event := s.event()
	created, err := s.create(ctx, event)
	if err != nil {
		return err
	}
	if created != nil && !created.EventTime.Equal(&event.EventTime) {
		return fmt.Errorf("Create answers with eventTime %v, want %v", created.EventTime.UTC(), event.EventTime.UTC())
	}
	last := begin.Add(1234567 * time.Microsecond)
	patched, err := s.patch(ctx, event, seriesPatch("", 2, last))
	if err != nil {
		return err
	}
	switch {
	case !patched.EventTime.Equal(&event.EventTime):
		return fmt.Errorf("Patch answers with eventTime %v, want %v", patched.EventTime.UTC(), event.EventTime.UTC())
	case patched.Series == nil || !patched.Series.LastObservedTime.Time.Equal(last):
		return fmt.Errorf("Patch answers with series %s, want lastObservedTime %v", seriesOf(patched), last)
	}
	return nil
}

func createTakesSeries(ctx context.Context, s *sinkTest) error {
	event := withSeries(s.event(), 57, begin.Add(time.Second))
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	return s.expect(ctx, event)
}

func createAnswers(ctx context.Context, s *sinkTest) error {
	event := s.event()
	created, err := s.create(ctx, event)
	if err != nil {
		return err
	}
	if err := differ("Create answers with", event, created); err != nil {
		return err
	}
	if s.Unversioned {
		return nil
	}
	if created.ResourceVersion == "" {
		return errors.New("Create answers without a resourceVersion")
	}
	looked, err := s.patch(ctx, event, `{}`)
	if err != nil {
		return err
	}
	if looked.ResourceVersion != created.ResourceVersion {
		return fmt.Errorf("Create answers with resourceVersion %q, an empty patch with %q", created.ResourceVersion, looked.ResourceVersion)
	}
	return nil
}

func createFindsWhatStands(ctx context.Context, s *sinkTest) error {
	event := s.event()
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	other := event.DeepCopy()
	other.Note, other.Reason = "another one", "Other"
	if _, err := s.Sink.Create(ctx, other); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a second Create of %s answers with %w, want AlreadyExists", event.Name, orNil(err))
	}
	return s.expect(ctx, event)
}

func namespacesAreApart(ctx context.Context, s *sinkTest) error {
	one := s.event()
	other := one.DeepCopy()
	other.Namespace, other.Regarding.Namespace = s.Namespaces[1], s.Namespaces[1]
	other.Note = "the one in " + other.Namespace
	for _, event := range []*eventsv1.Event{one, other} {
		if _, err := s.create(ctx, event); err != nil {
			return err
		}
	}
	if _, err := s.patch(ctx, other, seriesPatch("", 3, begin)); err != nil {
		return err
	}
	return errors.Join(s.expect(ctx, one), s.expect(ctx, withSeries(other, 3, begin)))
}

func emptyPatchShows(ctx context.Context, s *sinkTest) error {
	event := withSeries(s.event(), 2, begin)
	created, err := s.create(ctx, event)
	if err != nil {
		return err
	}
	// Who looks knows the name, and no more of it.
	name := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: event.Namespace, Name: event.Name}}
	for range 2 {
		looked, err := s.patch(ctx, name, `{}`)
		if err != nil {
			return err
		}
		if err := differ("an empty patch shows", event, looked); err != nil {
			return err
		}
		if !s.Unversioned && created != nil && looked.ResourceVersion != created.ResourceVersion {
			return fmt.Errorf("an empty patch changes the resourceVersion from %q to %q", created.ResourceVersion, looked.ResourceVersion)
		}
	}
	return nil
}

func patchSetsSeries(ctx context.Context, s *sinkTest) error {
	event := s.event()
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	for count := int32(2); count < 5; count++ {
		last := begin.Add(time.Duration(count) * time.Minute)
		patched, err := s.patch(ctx, event, seriesPatch("", count, last))
		if err != nil {
			return err
		}
		want := withSeries(event, count, last)
		if err := differ("Patch answers with", want, patched); err != nil {
			return err
		}
		if err := s.expect(ctx, want); err != nil {
			return err
		}
	}
	return nil
}

func patchMergesAnnotations(ctx context.Context, s *sinkTest) error {
	event := withSeries(s.event(), 2, begin)
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	patched, err := s.patch(ctx, event, `{"metadata":{"annotations":{"example.com/gone":null,"example.com/new":"<new>"}}}`)
	if err != nil {
		return err
	}
	want := event.DeepCopy()
	delete(want.Annotations, "example.com/gone")
	want.Annotations["example.com/new"] = "<new>"
	return errors.Join(differ("Patch answers with", want, patched), s.expect(ctx, want))
}

func patchTwice(ctx context.Context, s *sinkTest) error {
	event := s.event()
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	for range 3 {
		if _, err := s.patch(ctx, event, seriesPatch("", 7, begin)); err != nil {
			return err
		}
	}
	return s.expect(ctx, withSeries(event, 7, begin))
}

func patchWritesItself(ctx context.Context, s *sinkTest) error {
	event := s.event()
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	other := withSeries(event, 99, begin.Add(time.Hour))
	other.Note, other.Reason, other.ResourceVersion = "another note", "Other", ""
	other.Annotations = map[string]string{"example.com/other": "not to be written"}
	if _, err := s.patch(ctx, other, `{"metadata":{"annotations":{"example.com/new":"new"}}}`); err != nil {
		return err
	}
	want := event.DeepCopy()
	want.Annotations["example.com/new"] = "new"
	if err := s.expect(ctx, want); err != nil {
		return err
	}
	if _, err := s.patch(ctx, other, seriesPatch("", 5, begin)); err != nil {
		return err
	}
	return s.expect(ctx, withSeries(want, 5, begin))
}

func patchOfNothing(ctx context.Context, s *sinkTest) error {
	event := s.event()
	for _, patch := range []string{`{}`, seriesPatch("", 2, begin), `{}`} {
		if _, err := s.Sink.Patch(ctx, event.DeepCopy(), []byte(patch)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("Patch of %s, which is not there, with %s answers with %w, want NotFound", event.Name, patch, orNil(err))
		}
	}
	if _, err := s.create(ctx, event); err != nil {
		return fmt.Errorf("after a Patch of what was not there: %w", err)
	}
	return nil
}

func patchOfAnotherVersion(ctx context.Context, s *sinkTest) error {
	if s.Unversioned {
		return fmt.Errorf("%w: SinkUnderTest.Unversioned", errSkipped)
	}
	event := s.event()
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	first, err := s.patch(ctx, event, `{}`)
	if err != nil {
		return err
	}
	second, err := s.patch(ctx, event, seriesPatch(first.ResourceVersion, 2, begin))
	if err != nil {
		return fmt.Errorf("with the resourceVersion that the Event has: %w", err)
	}
	_, err = s.Sink.Patch(ctx, event.DeepCopy(), []byte(seriesPatch(first.ResourceVersion, 3, begin)))
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("Patch of resourceVersion %q, where it is %q, answers with %w, want Conflict", first.ResourceVersion, second.ResourceVersion, orNil(err))
	}
	return s.expect(ctx, withSeries(event, 2, begin))
}

func argumentsAreLeft(ctx context.Context, s *sinkTest) error {
	event := s.event()
	before := event.DeepCopy()
	if _, err := s.Sink.Create(ctx, event); err != nil {
		return fmt.Errorf("Create of %s: %w", event.Name, err)
	}
	if !equality.Semantic.DeepEqual(before, event) {
		return fmt.Errorf("Create changes the Event that it is given: from %v to %v", before, event)
	}
	patch := []byte(seriesPatch("", 2, begin))
	sent := bytes.Clone(patch)
	if _, err := s.Sink.Patch(ctx, event, sent); err != nil {
		return fmt.Errorf("Patch of %s: %w", event.Name, err)
	}
	if !equality.Semantic.DeepEqual(before, event) {
		return fmt.Errorf("Patch changes the Event that it is given: from %v to %v", before, event)
	}
	if !bytes.Equal(patch, sent) {
		return fmt.Errorf("Patch changes the patch that it is given: from %s to %s", patch, sent)
	}
	return nil
}

func callsAreConcurrent(ctx context.Context, s *sinkTest) error {
	const callers, patches = 8, 5
	all := s.event() // which all of them want to create
	own := make([]*eventsv1.Event, callers)
	errs := make([]error, callers)
	won := make([]bool, callers)
	var wg sync.WaitGroup
	for i := range callers {
		own[i] = s.event()
		wg.Go(func() {
			_, err := s.Sink.Create(ctx, all.DeepCopy())
			won[i] = err == nil
			if err != nil && !apierrors.IsAlreadyExists(err) {
				errs[i] = fmt.Errorf("Create of %s by several: %w, want AlreadyExists", all.Name, err)
				return
			}
			if _, errs[i] = s.create(ctx, own[i]); errs[i] != nil {
				return
			}
			for n := range int32(patches) {
				if _, errs[i] = s.patch(ctx, own[i], seriesPatch("", 2+n, begin)); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	winners := 0
	for i := range callers {
		if won[i] {
			winners++
		}
		if err := s.expect(ctx, withSeries(own[i], 1+patches, begin)); err != nil {
			return err
		}
	}
	if winners != 1 {
		return fmt.Errorf("%d of %d Creates of %s at the same time were successful, want 1", winners, callers, all.Name)
	}
	return s.expect(ctx, all)
}

func endedContext(ctx context.Context, s *sinkTest) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	event := s.event()
	if _, err := s.Sink.Create(ended, event.DeepCopy()); err == nil {
		if err := s.expect(ctx, event); err != nil {
			return fmt.Errorf("after a Create without an error: %w", err)
		}
	}
	patched := s.event()
	if _, err := s.create(ctx, patched); err != nil {
		return err
	}
	if _, err := s.Sink.Patch(ended, patched.DeepCopy(), []byte(seriesPatch("", 2, begin))); err == nil {
		if err := s.expect(ctx, withSeries(patched, 2, begin)); err != nil {
			return fmt.Errorf("after a Patch without an error: %w", err)
		}
	}
	return nil
}

func stalledCall(ctx context.Context, s *sinkTest) error {
	if s.Stall == nil {
		return fmt.Errorf("%w: SinkUnderTest.Stall is not set", errSkipped)
	}
	event, other := s.event(), s.event()
	if _, err := s.create(ctx, event); err != nil {
		return err
	}
	calls := map[string]func(context.Context) error{
		"Create": func(ctx context.Context) error { _, err := s.Sink.Create(ctx, other.DeepCopy()); return err },
		"Patch": func(ctx context.Context) error {
			_, err := s.Sink.Patch(ctx, event.DeepCopy(), []byte(seriesPatch("", 2, begin)))
			return err
		},
	}
	if lister, ok := s.Sink.(events.EventLister); ok {
		calls["List"] = func(ctx context.Context) error {
			_, err := lister.List(ctx, event.Namespace, metav1.ListOptions{})
			return err
		}
	}
	for name, call := range calls {
		if err := s.stalled(ctx, name, call); err != nil {
			return err
		}
	}
	return nil
}

// stalled makes a call that is not answered, and ends its context.
func (s *sinkTest) stalled(ctx context.Context, name string, call func(context.Context) error) error {
	// Not at once, so that the call gets as far as it can. A good sink passes
	// however far that is.
	ctx, cancel := context.WithTimeout(ctx, stallTime)
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
			return fmt.Errorf("%s that was not answered returns no error", name)
		}
		return nil
	case <-timer.C:
		resume()
		err := <-returned // or it would be left behind
		return fmt.Errorf("%s does not return within %v of the end of its context (when there was an answer, it returned: %w)", name, returnGrace, orNil(err))
	}
}

// lister returns what can list, and three Events of one controller, in both
// namespaces, by their names.
func (s *sinkTest) lister(ctx context.Context) (events.EventLister, map[string]*eventsv1.Event, error) {
	lister, ok := s.Sink.(events.EventLister)
	if !ok {
		return nil, nil, fmt.Errorf("%w: the sink is no events.EventLister", errSkipped)
	}
	controller := s.event().ReportingController
	created := make(map[string]*eventsv1.Event)
	for i := range 3 {
		event := withSeries(s.event(), int32(2+i), begin)
		event.ReportingController = controller
		if i == 2 {
			event.Namespace, event.Regarding.Namespace = s.Namespaces[1], s.Namespaces[1]
		}
		if _, err := s.create(ctx, event); err != nil {
			return nil, nil, err
		}
		created[event.Name] = event
	}
	return lister, created, nil
}

// maxPages is how many pages there can be.
const maxPages = 10_000

// list lists what is selected, page by page, and returns those that are in want. It
// returns an error if one of want is missing.
func (s *sinkTest) list(ctx context.Context, lister events.EventLister, namespace string, limit int64, want map[string]*eventsv1.Event) (map[string]*eventsv1.Event, error) {
	opts := metav1.ListOptions{Limit: limit}
	for _, event := range want {
		opts.FieldSelector = fields.OneTermEqualSelector("reportingController", event.ReportingController).String()
	}
	found := make(map[string]*eventsv1.Event)
	for range maxPages {
		page, err := lister.List(ctx, namespace, opts)
		if err != nil {
			return nil, fmt.Errorf("List of namespace %q: %w", namespace, err)
		}
		if page == nil {
			return nil, fmt.Errorf("List of namespace %q answers with nothing and no error", namespace)
		}
		for i := range page.Items {
			if event := &page.Items[i]; want[event.Name] != nil {
				found[event.Name] = event
			}
		}
		if opts.Continue = page.Continue; opts.Continue == "" {
			for name := range want {
				if found[name] == nil {
					return nil, fmt.Errorf("List of namespace %q, in pages of %d, does not find %s", namespace, limit, name)
				}
			}
			return found, nil
		}
	}
	return nil, fmt.Errorf("List of namespace %q has more than %d pages", namespace, maxPages)
}

func listFinds(ctx context.Context, s *sinkTest) error {
	lister, created, err := s.lister(ctx)
	if err != nil {
		return err
	}
	for _, namespace := range append(s.Namespaces[:], metav1.NamespaceAll) {
		want := maps.Clone(created)
		maps.DeleteFunc(want, func(_ string, event *eventsv1.Event) bool {
			return namespace != metav1.NamespaceAll && event.Namespace != namespace
		})
		if _, err := s.list(ctx, lister, namespace, 0, want); err != nil {
			return err
		}
	}
	return nil
}

func listShowsAll(ctx context.Context, s *sinkTest) error {
	lister, created, err := s.lister(ctx)
	if err != nil {
		return err
	}
	found, err := s.list(ctx, lister, metav1.NamespaceAll, 0, created)
	if err != nil {
		return err
	}
	for name, event := range found {
		if err := differ("List shows", created[name], event); err != nil {
			return err
		}
		if !s.Unversioned && event.ResourceVersion == "" {
			return fmt.Errorf("List shows %s without a resourceVersion", name)
		}
	}
	return nil
}

func listEnds(ctx context.Context, s *sinkTest) error {
	lister, created, err := s.lister(ctx)
	if err != nil {
		return err
	}
	_, err = s.list(ctx, lister, metav1.NamespaceAll, 2, created)
	return err
}

// orNil returns err, or an error that says that there is none.
func orNil(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}
