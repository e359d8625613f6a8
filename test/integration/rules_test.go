package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// ruleRows are changes that make a valid Event hit or exceed a limit of the
// server.
func ruleRows() map[string]func(*eventsv1.Event) {
	long := func(n int) string { return strings.Repeat("x", n) }
	now := metav1.NowMicro()
	return map[string]func(*eventsv1.Event){
		"fine": func(*eventsv1.Event) {},

		"empty note":                      func(e *eventsv1.Event) { e.Note = "" },
		"note of 1024 bytes":              func(e *eventsv1.Event) { e.Note = long(1024) },
		"note of 1025 bytes":              func(e *eventsv1.Event) { e.Note = long(1025) },
		"note of 1024 bytes in runes":     func(e *eventsv1.Event) { e.Note = strings.Repeat("é", 512) },
		"note of 1026 bytes in runes":     func(e *eventsv1.Event) { e.Note = strings.Repeat("é", 513) },
		"note with control characters":    func(e *eventsv1.Event) { e.Note = "a\x00b\nc" },
		"no reason":                       func(e *eventsv1.Event) { e.Reason = "" },
		"reason of 128 bytes":             func(e *eventsv1.Event) { e.Reason = long(128) },
		"reason of 129 bytes":             func(e *eventsv1.Event) { e.Reason = long(129) },
		"reason with spaces":              func(e *eventsv1.Event) { e.Reason = "created job-17!" },
		"no action":                       func(e *eventsv1.Event) { e.Action = "" },
		"action of 128 bytes":             func(e *eventsv1.Event) { e.Action = long(128) },
		"action of 129 bytes":             func(e *eventsv1.Event) { e.Action = long(129) },
		"Warning":                         func(e *eventsv1.Event) { e.Type = corev1.EventTypeWarning },
		"no type":                         func(e *eventsv1.Event) { e.Type = "" },
		"another type":                    func(e *eventsv1.Event) { e.Type = "Error" },
		"type in lower case":              func(e *eventsv1.Event) { e.Type = "normal" },
		"no instance":                     func(e *eventsv1.Event) { e.ReportingInstance = "" },
		"instance of 128 bytes":           func(e *eventsv1.Event) { e.ReportingInstance = long(128) },
		"instance of 129 bytes":           func(e *eventsv1.Event) { e.ReportingInstance = long(129) },
		"instance with spaces":            func(e *eventsv1.Event) { e.ReportingInstance = "a process / on Host_1" },
		"no controller":                   func(e *eventsv1.Event) { e.ReportingController = "" },
		"controller without a prefix":     func(e *eventsv1.Event) { e.ReportingController = "kubelet" },
		"controller with a space":         func(e *eventsv1.Event) { e.ReportingController = "example.com/my controller" },
		"controller with two slashes":     func(e *eventsv1.Event) { e.ReportingController = "example.com/a/b" },
		"controller of 63 bytes":          func(e *eventsv1.Event) { e.ReportingController = "example.com/" + long(63) },
		"controller of 64 bytes":          func(e *eventsv1.Event) { e.ReportingController = "example.com/" + long(64) },
		"controller prefix of 253 bytes":  func(e *eventsv1.Event) { e.ReportingController = long(253) + "/controller" },
		"controller prefix of 254 bytes":  func(e *eventsv1.Event) { e.ReportingController = long(254) + "/controller" },
		"controller prefix in upper case": func(e *eventsv1.Event) { e.ReportingController = "Example.COM/controller" },
		"controller without a name":       func(e *eventsv1.Event) { e.ReportingController = "example.com/" },
		"controller with an empty prefix": func(e *eventsv1.Event) { e.ReportingController = "/controller" },
		"controller that is not ASCII":    func(e *eventsv1.Event) { e.ReportingController = "contrôleur" },
		"leader election identity":        func(e *eventsv1.Event) { e.ReportingController = "host-0_" + long(64) },

		"object of another namespace":          func(e *eventsv1.Event) { e.Regarding.Namespace = "another" },
		"cluster-scoped object":                func(e *eventsv1.Event) { e.Regarding.Namespace = "" },
		"cluster-scoped object in kube-system": func(e *eventsv1.Event) { e.Regarding.Namespace, e.Namespace = "", metav1.NamespaceSystem },
		"cluster-scoped object in default":     func(e *eventsv1.Event) { e.Regarding.Namespace, e.Namespace = "", metav1.NamespaceDefault },
		"no object":                            func(e *eventsv1.Event) { e.Regarding = corev1.ObjectReference{Namespace: e.Namespace} },
		"no related object":                    func(e *eventsv1.Event) { e.Related = nil },

		"no time":                              func(e *eventsv1.Event) { e.EventTime = metav1.MicroTime{} },
		"no time, object of another namespace": func(e *eventsv1.Event) { e.EventTime, e.Regarding.Namespace = metav1.MicroTime{}, "another" },
		"no time, cluster-scoped object":       func(e *eventsv1.Event) { e.EventTime, e.Regarding.Namespace = metav1.MicroTime{}, "" },
		"no time, cluster-scoped object in default": func(e *eventsv1.Event) {
			e.EventTime, e.Regarding.Namespace, e.Namespace = metav1.MicroTime{}, "", metav1.NamespaceDefault
		},
		"no time, no reason":    func(e *eventsv1.Event) { e.EventTime, e.Reason = metav1.MicroTime{}, "" },
		"series of 2":           func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: now} },
		"series of 1":           func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 1, LastObservedTime: now} },
		"series without a time": func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 2} },
		"empty series":          func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{} },

		"old count":          func(e *eventsv1.Event) { e.DeprecatedCount = 1 },
		"old source":         func(e *eventsv1.Event) { e.DeprecatedSource.Component = "x" },
		"old host":           func(e *eventsv1.Event) { e.DeprecatedSource.Host = "x" },
		"old firstTimestamp": func(e *eventsv1.Event) { e.DeprecatedFirstTimestamp = metav1.Now() },
		"old lastTimestamp":  func(e *eventsv1.Event) { e.DeprecatedLastTimestamp = metav1.Now() },

		"name of 253 bytes":            func(e *eventsv1.Event) { e.Name += long(253 - len(e.Name)) },
		"name of 254 bytes":            func(e *eventsv1.Event) { e.Name += long(254 - len(e.Name)) },
		"name with a colon":            func(e *eventsv1.Event) { e.Name = "system:" + e.Name },
		"name in upper case":           func(e *eventsv1.Event) { e.Name = "A" + e.Name },
		"name with a slash":            func(e *eventsv1.Event) { e.Name = "a/" + e.Name },
		"name with two dots":           func(e *eventsv1.Event) { e.Name = "a.." + e.Name },
		"name that is not ASCII":       func(e *eventsv1.Event) { e.Name = "größe" + e.Name },
		"name that ends in a dot":      func(e *eventsv1.Event) { e.Name += "." },
		"generated name":               func(e *eventsv1.Event) { e.GenerateName, e.Name = e.Name+"-", "" },
		"neither name":                 func(e *eventsv1.Event) { e.Name = "" },
		"annotation":                   func(e *eventsv1.Event) { e.Annotations = map[string]string{"Example.COM/A": "é"} },
		"annotation of an invalid key": func(e *eventsv1.Event) { e.Annotations = map[string]string{"not a key": ""} },
		"annotations of 256 KiB":       func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": long(256<<10 - 1)} },
		"annotations above 256 KiB":    func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": long(256 << 10)} },
		"label of an invalid value":    func(e *eventsv1.Event) { e.Labels = map[string]string{"a": "not a value"} },
		"resourceVersion":              func(e *eventsv1.Event) { e.ResourceVersion = "1" },
		"several invalid fields":       func(e *eventsv1.Event) { e.Reason, e.Action, e.Type, e.Note = "", "", "", long(1025) },
	}
}

func ruleEvent(namespace string) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: "pod." + rand.String(16)},
		EventTime:           metav1.NowMicro(),
		ReportingController: controller,
		ReportingInstance:   "instance-0",
		Action:              "Test",
		Reason:              "Tested",
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "pod"},
		Related:             &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node"},
		Note:                "it was tested",
		Type:                corev1.EventTypeNormal,
	}
}

// TestValidateAgreesWithTheServer creates each row on the real server and on
// eventstest.Server. Validate finds the same invalid fields as they do, and no
// others.
func TestValidateAgreesWithTheServer(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	memory := &eventstest.Server{}
	accepted := 0
	for name, change := range ruleRows() {
		event := ruleEvent(namespace)
		change(event)
		problems := eventstest.Validate(event)
		created, err := clients.EventsV1().Events(event.Namespace).Create(t.Context(), event, metav1.CreateOptions{})
		_, memoryErr := memory.Create(t.Context(), event)
		assert.Equal(t, codeOf(err), codeOf(memoryErr), "%s: %v, in memory %v", name, err, memoryErr)
		if name == "resourceVersion" { // storage rejects it, not validation
			require.Error(t, err)
			require.Empty(t, problems)
			continue
		}
		if err == nil {
			accepted++
			require.Empty(t, problems, "%s: the server accepts it", name)
			if created.Namespace != namespace {
				t.Cleanup(func() { deleteEvent(t, clients, created) })
			}
			continue
		}
		require.EqualValues(t, 422, codeOf(err), "%s: %v", name, err)
		found := make(map[string]bool)
		for _, problem := range problems {
			found[problem.Field] = true
		}
		assert.Equal(t, causes(err), slices.Sorted(maps.Keys(found)), "%s: %v", name, err)
		assert.Equal(t, causes(err), causes(memoryErr), "%s: %v", name, err)
	}
	assert.Greater(t, accepted, 20)
	assert.Greater(t, len(ruleRows())-accepted, 30)
}

func TestPatchesAgreeWithTheServer(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	server, memory := eventsSink(apiserver.Clientset(t)), &eventstest.Server{}
	for name, patch := range map[string]string{
		"empty":                  `{}`,
		"null":                   `null`,
		"series":                 `{"series":{"count":7,"lastObservedTime":"2026-03-01T12:00:00.123456Z"}}`,
		"series of 1":            `{"series":{"count":1,"lastObservedTime":"2026-03-01T12:00:00.123456Z"}}`,
		"count alone":            `{"series":{"count":7}}`,
		"no series":              `{"series":null}`,
		"count is text":          `{"series":{"count":"7"}}`,
		"invalid time":           `{"series":{"count":7,"lastObservedTime":"yesterday"}}`,
		"annotations":            `{"metadata":{"annotations":{"a":"1","b":"2"}}}`,
		"annotation gone":        `{"metadata":{"annotations":{"kept":null}}}`,
		"annotations gone":       `{"metadata":{"annotations":null}}`,
		"annotation is a number": `{"metadata":{"annotations":{"a":1}}}`,
		"annotation key":         `{"metadata":{"annotations":{"not a key":"1"}}}`,
		"annotations are a list": `{"metadata":{"annotations":["a"]}}`,
		"labels":                 `{"metadata":{"labels":{"a":"1"}}}`,
		"note":                   `{"note":"changed"}`,
		"same note":              `{"note":"it was tested"}`,
		"note is a number":       `{"note":1}`,
		"reason":                 `{"reason":"Changed"}`,
		"action":                 `{"action":"Change"}`,
		"type":                   `{"type":"Warning"}`,
		"regarding":              `{"regarding":{"uid":"other"}}`,
		"related":                `{"related":null}`,
		"controller":             `{"reportingController":"other"}`,
		"instance":               `{"reportingInstance":"other"}`,
		"eventTime":              `{"eventTime":"2026-03-01T12:00:00.123456Z"}`,
		"old count":              `{"deprecatedCount":1}`,
		"old source":             `{"deprecatedSource":{"host":"x"}}`,
		"old firstTimestamp":     `{"deprecatedFirstTimestamp":"2026-03-01T12:00:00Z"}`,
		"unknown field":          `{"unknown":1}`,
		"name":                   `{"metadata":{"name":"other"}}`,
		"namespace":              `{"metadata":{"namespace":"other"}}`,
		"uid":                    `{"metadata":{"uid":"other"}}`,
		"version":                `{"metadata":{"resourceVersion":"1000000000"}}`,
		"no version":             `{"metadata":{"resourceVersion":null}}`,
		"list":                   `[]`,
		"number":                 `1`,
		"invalid JSON":           `{`,
		"nothing":                ``,
	} {
		event := ruleEvent(namespace)
		event.Annotations = map[string]string{"kept": "1"}
		before, err := server.Create(t.Context(), event)
		require.NoError(t, err)
		memoryBefore, err := memory.Create(t.Context(), event)
		require.NoError(t, err)

		after, err := server.Patch(t.Context(), event, []byte(patch))
		memoryAfter, memoryErr := memory.Patch(t.Context(), event, []byte(patch))
		assert.Equal(t, codeOf(err), codeOf(memoryErr), "%s: %v, in memory %v", name, err, memoryErr)
		if err != nil || memoryErr != nil {
			if codeOf(err) == 422 && !strings.HasPrefix(strings.Join(causes(memoryErr), ""), "patch") {
				assert.Equal(t, causes(err), causes(memoryErr), "%s: %v", name, err)
			}
			continue
		}
		assert.Equal(t, before.ResourceVersion == after.ResourceVersion, memoryBefore.ResourceVersion == memoryAfter.ResourceVersion, name)
		assert.Equal(t, contentOf(after), contentOf(memoryAfter), name)
	}
}

// contentOf returns an Event as JSON, without the fields that each server sets.
func contentOf(event *eventsv1.Event) string {
	event = event.DeepCopy()
	event.TypeMeta = metav1.TypeMeta{}
	event.UID, event.ResourceVersion, event.ManagedFields, event.CreationTimestamp = "", "", nil, metav1.Time{}
	data, err := json.Marshal(event) // with times as on the wire
	if err != nil {
		panic(err)
	}
	return string(data)
}

func codeOf(err error) int32 {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return 200
	case errors.As(err, &status):
		return status.Status().Code
	default:
		return 0
	}
}

// causes returns the fields that an error names, sorted and without duplicates,
// by their names in events.k8s.io/v1.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	names := map[string]string{
		"message":                  "note",
		"involvedObject":           "regarding",
		"involvedObject.namespace": "regarding.namespace",
		"count":                    "deprecatedCount",
		"source":                   "deprecatedSource",
		"firstTimestamp":           "deprecatedFirstTimestamp",
		"lastTimestamp":            "deprecatedLastTimestamp",
	}
	fields := make(map[string]bool)
	for _, cause := range status.Status().Details.Causes {
		field := cause.Field
		if name, ok := names[field]; ok {
			field = name
		}
		fields[field] = true
	}
	return slices.Sorted(maps.Keys(fields))
}

// TestSinks runs the conformance suite with each sink of this project on the real
// server, over a network that can delay requests.
func TestSinks(t *testing.T) {
	t.Parallel()
	namespaces := [2]string{apiserver.Namespace(t), apiserver.Namespace(t)}
	for name, sink := range sinks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eventstest.TestSink(t, func(t *testing.T) eventstest.SinkUnderTest {
				config := apiserver.Config(t)
				server, err := url.Parse(config.Host)
				require.NoError(t, err)
				network, err := faultproxy.Listen(t.Context(), server.Host)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, network.Close()) })
				if config.ServerName == "" {
					config.ServerName = server.Hostname() // the certificate need not name the proxy
				}
				server.Host = network.Addr()
				config.Host = server.String()
				return eventstest.SinkUnderTest{
					Sink:       sink(apiserver.ClientsetFor(t, config)),
					Namespaces: namespaces,
					Stall: func() (resume func()) {
						network.Set(faultproxy.Fault{HoldRequests: true})
						return func() { network.Set(faultproxy.Fault{}) }
					},
				}
			})
		})
	}
}

// TestCoreSinkOnAFakeClientset runs the suite on a fake clientset, which ignores
// contexts and sets no resourceVersion.
func TestCoreSinkOnAFakeClientset(t *testing.T) {
	t.Parallel()
	eventstest.TestSink(t, func(*testing.T) eventstest.SinkUnderTest {
		return eventstest.SinkUnderTest{Sink: &compat.CoreSink{Interface: fake.NewClientset().CoreV1()}, Unversioned: true}
	})
}

// emission is a call of AnnotatedEventf, and the options of its recorder.
type emission struct {
	controller, instance string
	clusterNamespace     string

	regarding, related   *corev1.ObjectReference
	annotations          map[string]string
	eventtype            string
	reason, action, note string
	args                 []any
}

// wireRow is an emission at or beyond a limit of the API server.
type wireRow struct {
	name string
	// emit changes a valid emission.
	emit func(*emission)
	// want changes the Event that has what was emitted into the Event that the
	// server must have. If nil, they are the same.
	want func(*eventsv1.Event)
	// wantName is a pattern for the name of the Event, in which HASH stands for
	// the hash of the key. If empty, it is the object's name, a dot and the hash.
	wantName string
	// omitsAnnotations is set if the recorder omits annotations.
	omitsAnnotations bool
}

var contentTypes = map[string]string{
	"JSON":     runtime.ContentTypeJSON,
	"protobuf": runtime.ContentTypeProtobuf,
}

// TestWireRules emits everything that the API server might reject: as an Event
// that is created and patched, and as an Event that is created as a series.
func TestWireRules(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	for _, row := range wireRows() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for name, contentType := range contentTypes {
				t.Run(name, func(t *testing.T) {
					row.trySingleton(t, namespace, contentType)
					row.trySeries(t, namespace, contentType)
				})
			}
		})
	}
}

func (row *wireRow) emission(namespace string) emission {
	e := emission{
		controller: controller,
		instance:   "wire-test-0",
		regarding:  &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "pod"},
		eventtype:  corev1.EventTypeNormal,
		reason:     "Tested",
		action:     "Testing",
		note:       "it was tested",
	}
	row.emit(&e)
	e.regarding.UID = uuid.NewUUID()
	return e
}

func (e *emission) event() *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.regarding.Namespace, Annotations: maps.Clone(e.annotations)},
		ReportingController: e.controller,
		ReportingInstance:   e.instance,
		Action:              e.action,
		Reason:              e.reason,
		Regarding:           *e.regarding,
		Related:             e.related,
		Note:                e.note,
		Type:                e.eventtype,
	}
	if len(e.args) > 0 {
		event.Note = fmt.Sprintf(e.note, e.args...)
	}
	return event
}

func (row *wireRow) trySingleton(t *testing.T, namespace, contentType string) {
	t.Helper()
	e := row.emission(namespace)
	r, emit := row.record(t, &e, contentType)
	r.start(t)
	emit()
	r.flush(t)
	assert.Equal(t, "create events.events.k8s.io: 1", r.requests.String())
	row.requireOnServer(t, r, &e, 1)

	emit()
	r.flush(t)
	assert.Equal(t, "create events.events.k8s.io: 1, patch events.events.k8s.io: 1", r.requests.String())
	row.requireOnServer(t, r, &e, 2)
}

func (row *wireRow) trySeries(t *testing.T, namespace, contentType string) {
	t.Helper()
	e := row.emission(namespace)
	r, emit := row.record(t, &e, contentType)
	emit()
	emit()
	r.start(t)
	r.flush(t)
	assert.Equal(t, "create events.events.k8s.io: 1", r.requests.String())
	row.requireOnServer(t, r, &e, 2)
}

func (row *wireRow) record(t *testing.T, e *emission, contentType string) (r *recording, emit func()) {
	t.Helper()
	config := apiserver.Config(t)
	config.ContentType = contentType
	r = newRecording(t, eventsSink, config, events.Options{ReportingInstance: e.instance, ClusterNamespace: e.clusterNamespace})
	recorder := r.NewRecorder(scheme.Scheme, e.controller).(events.AnnotatedEventRecorder)
	var related runtime.Object // not a nil pointer in an interface
	if e.related != nil {
		related = e.related
	}
	return r, func() {
		recorder.AnnotatedEventf(e.regarding, related, e.annotations, e.eventtype, e.reason, e.action, e.note, e.args...)
	}
}

func (row *wireRow) requireOnServer(t *testing.T, r *recording, e *emission, count int) {
	t.Helper()
	want := e.event()
	if row.want != nil {
		row.want(want)
	}
	found := eventsAbout(t, r.clients, want.Namespace, e.regarding.UID)
	require.Len(t, found, 1)
	got := &found[0]
	if e.regarding.Namespace == "" {
		t.Cleanup(func() { deleteEvent(t, r.clients, got) })
	}
	if count > 1 {
		metav1.SetMetaDataAnnotation(&want.ObjectMeta, series.AnnotationState, "Ongoing")
	}
	requireEvent(t, want, got)
	requireNoOldFields(t, r.clients, got)
	assert.Equal(t, count > 1, got.Series != nil)
	name := row.wantName
	if name == "" {
		name = regexp.QuoteMeta(e.regarding.Name) + `\.HASH`
	}
	assert.Regexp(t, `^`+strings.Replace(name, "HASH", "[0-9a-f]{16}", 1)+`$`, got.Name)
	assert.LessOrEqual(t, len(got.Name), maxName)

	stats := r.Stats()
	assert.Empty(t, stats.Dropped)
	for key := range stats.Writes {
		assert.Equal(t, "written", key.Outcome)
	}
	assert.Equal(t, row.omitsAnnotations, stats.AnnotationsOmitted > 0)
	requireAccounted(t, count, stats, []eventsv1.Event{*got})
}

const (
	maxNote     = 1024
	maxReason   = 128
	maxAction   = 128
	maxInstance = 128
	maxName     = 253
)

// wireRows is the table of TestWireRules. Every rule has a row at its limit,
// which the server accepts unchanged, and one beyond it, which the recorder
// repairs. TestValidateAgreesWithTheServer shows that the server rejects it.
func wireRows() []wireRow {
	return slices.Concat(noteRows(), reasonRows(), controllerRows(), instanceRows(), objectRows(), clusterScopedRows(), annotationRows())
}

func noteRows() []wireRow {
	row := func(name, note, want string, args ...any) wireRow {
		r := wireRow{name: name, emit: func(e *emission) { e.note, e.args = note, args }}
		if want != note {
			r.want = func(e *eventsv1.Event) { e.Note = want }
		}
		return r
	}
	unchanged := func(name, note string) wireRow { return row(name, note, note) }
	n := func(length int) string { return strings.Repeat("n", length) }
	cut := n(maxNote-len("…")) + "…"
	return []wireRow{
		unchanged("note of 1024 bytes", n(maxNote)),
		row("note of 1025 bytes", n(maxNote+1), cut),
		row("note of 5000 bytes", n(5000), cut),
		// The first byte of every "é" has an odd offset, so a cut after 1024-3
		// bytes is between its two bytes.
		row("note with a rune at the limit", strings.Repeat("é", maxNote), strings.Repeat("é", (maxNote-len("…"))/2)+"…"),
		row("note that arguments make too long", "%s", cut, n(maxNote+1)),
		unchanged("note with a percent sign and no arguments", "95% full, 100%d"),
		row("note with a percent sign and arguments", "%d%% full", "95% full", 95),
		unchanged("empty note", ""),
		unchanged("note with control characters", "a\x00b\nc\u2028d"),
		row("note that is not UTF-8", "caf\xe9!", "caf\uFFFD!"),
		// It grows when the recorder makes it UTF-8.
		row("note of 1024 bytes that is not UTF-8",
			strings.Repeat("n\xff", maxNote/2), strings.Repeat("n\uFFFD", (maxNote-len("…"))/4)+"n…"),
	}
}

func reasonRows() []wireRow {
	row := func(name, reason, action, wantReason, wantAction string) wireRow {
		return wireRow{
			name: name,
			emit: func(e *emission) { e.reason, e.action = reason, action },
			want: func(e *eventsv1.Event) { e.Reason, e.Action = wantReason, wantAction },
		}
	}
	reason, action := strings.Repeat("R", maxReason), strings.Repeat("A", maxAction)
	cutReason, cutAction := reason[:maxReason-len("…")]+"…", action[:maxAction-len("…")]+"…"
	return []wireRow{
		row("reason of 128 bytes", reason, "Testing", reason, "Testing"),
		row("reason of 129 bytes", reason+"R", "Testing", cutReason, "Testing"),
		row("empty reason", "", "Testing", "Testing", "Testing"),
		row("reason that is not UTF-8", "Test\xffed", "Testing", "Test\uFFFDed", "Testing"),
		row("action of 128 bytes", "Tested", action, "Tested", action),
		row("action of 129 bytes", "Tested", action+"A", "Tested", cutAction),
		row("empty action", "Tested", "", "Tested", "Tested"),
		row("long reason and empty action", reason+"R", "", cutReason, cutReason),
		row("neither reason nor action", "", "", "Unknown", "Unknown"),
		{
			name: "Warning",
			emit: func(e *emission) { e.eventtype = corev1.EventTypeWarning },
		},
	}
}

func controllerRows() []wireRow {
	row := func(name, controller, want string) wireRow {
		r := wireRow{name: name, emit: func(e *emission) { e.controller = controller }}
		if want != controller {
			r.want = func(e *eventsv1.Event) { e.ReportingController = want }
		}
		return r
	}
	n63, p253 := strings.Repeat("c", 63), strings.Repeat("p", 253)
	// A name that is too long ends in its hash, so that different names stay
	// different.
	return []wireRow{
		row("controller without a prefix", "kubelet", "kubelet"),
		row("controller with a space", "example.com/my controller", "example.com/my-controller"),
		row("controller with two slashes", "example.com/team/controller", "example.com/team-controller"),
		row("controller name of 63 bytes", "example.com/"+n63, "example.com/"+n63),
		row("controller name of 64 bytes", "example.com/"+n63+"c", "example.com/"+n63[:54]+"-39f4a785"),
		row("leader election identity", "host-0_"+strings.Repeat("0", 64), "host-0_"+strings.Repeat("0", 47)+"-ccd57e87"),
		row("controller prefix in upper case", "Example.COM/controller", "example.com/controller"),
		row("controller prefix of 253 bytes", p253+"/controller", p253+"/controller"),
		row("controller prefix of 254 bytes", p253+"p/controller", p253[:244]+"-e890cf3d/controller"),
		row("controller without a name", "example.com/", "example.com/unknown"),
		row("controller with an empty prefix", "/controller", "controller"),
		row("controller that is not ASCII", "contrôleur", "contr-leur"),
		row("empty controller", "", "unknown"),
	}
}

func instanceRows() []wireRow {
	row := func(name, instance, want string) wireRow {
		return wireRow{
			name: name,
			emit: func(e *emission) { e.instance = instance },
			want: func(e *eventsv1.Event) { e.ReportingInstance = want },
		}
	}
	i128 := strings.Repeat("i", maxInstance)
	return []wireRow{
		row("instance of 128 bytes", i128, i128),
		row("instance of 129 bytes", i128+"i", i128[:maxInstance-9]+"-09bf9544"),
		row("instance with spaces and slashes", "a process / on Host_1", "a process / on Host_1"),
		row("instance that is not UTF-8", "host\xff1", "host-1"),
	}
}

func objectRows() []wireRow {
	row := func(name, object, wantName string) wireRow {
		return wireRow{
			name:     name,
			emit:     func(e *emission) { e.regarding.Name = object },
			wantName: wantName,
		}
	}
	long := strings.Repeat("o", maxName)
	notUTF8 := row("object name that is not UTF-8", "pod\xff1", `pod-1\.HASH`)
	notUTF8.want = func(e *eventsv1.Event) { e.Regarding.Name = "pod\uFFFD1" }
	return []wireRow{
		row("object name in upper case", "My.Object", `my\.object\.HASH`),
		row("object name of 253 bytes", long, long[:236]+`\.HASH`),
		row("object name with a dot at the cut", long[:235]+"."+long[:17], long[:235]+`\.HASH`),
		row("object name with invalid ends", "-_pod_-", `pod\.HASH`),
		row("object name with dots at its ends", "..pod..", `pod\.HASH`),
		row("object name with dashes beside dots", "a-.-b", `a\.b\.HASH`),
		row("object name with a slash", "a/b", `a-b\.HASH`),
		row("object name that is not ASCII", "größe", `gr--e\.HASH`),
		row("object name without a valid character", "::", `HASH`),
		row("object without a name", "", `HASH`),
		notUTF8,
		{
			name: "object with a field path",
			emit: func(e *emission) { e.regarding.FieldPath = "spec.containers{main}" },
		}, {
			name: "object with a resource version",
			emit: func(e *emission) { e.regarding.ResourceVersion = "42" },
			want: func(e *eventsv1.Event) { e.Regarding.ResourceVersion = "" },
		}, {
			name: "related object",
			emit: func(e *emission) {
				e.related = &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Namespace: "other", Name: "Rs:1", UID: "u"}
			},
		},
	}
}

func clusterScopedRows() []wireRow {
	row := func(name, kind, object, clusterNamespace, wantNamespace, wantName string) wireRow {
		return wireRow{
			name: name,
			emit: func(e *emission) {
				e.regarding = &corev1.ObjectReference{APIVersion: "v1", Kind: kind, Name: object}
				e.clusterNamespace = clusterNamespace
			},
			want:     func(e *eventsv1.Event) { e.Namespace = wantNamespace },
			wantName: wantName,
		}
	}
	return []wireRow{
		row("Node", "Node", "node-1", "", "kube-system", ""),
		row("Namespace", "Namespace", "a-namespace", "", "kube-system", ""),
		row("Node in default", "Node", "node-1", "default", "default", ""),
		row("ClusterRole with a colon", "ClusterRole", "system:discovery", "", "kube-system", `system-discovery\.HASH`),
	}
}

func annotationRows() []wireRow {
	type m = map[string]string
	row := func(name string, omits bool, annotations, want m) wireRow {
		return wireRow{
			name:             name,
			omitsAnnotations: omits,
			emit:             func(e *emission) { e.annotations = annotations },
			want:             func(e *eventsv1.Event) { e.Annotations = maps.Clone(want) },
		}
	}
	unchanged := func(name string, annotations m) wireRow { return row(name, false, annotations, annotations) }
	// A series has no more annotations than that, to leave room for those of
	// later occurrences.
	const limit = 64 << 10
	big := strings.Repeat("a", limit-len("big"))
	return []wireRow{
		unchanged("annotations", m{"example.com/a": "1", "b": strings.Repeat("é", 1000), "example.com/empty": ""}),
		row("annotation with an invalid key", true, m{"example.com/a": "1", "not a key": "2"}, m{"example.com/a": "1"}),
		unchanged("annotation with a key in upper case", m{"Example.COM/A": "1"}),
		unchanged("annotations of 64 KiB", m{"big": big}),
		row("annotations of more than 64 KiB", true, m{"big": big + "a"}, nil),
		row("annotations of more than 256 KiB", true, m{"big": strings.Repeat("a", 256<<10)}, nil),
		row("annotation of this project", false, m{"eventseries.dev/state": "Finished", "example.com/a": "1"}, m{"example.com/a": "1"}),
		row("annotation that is not UTF-8", false, m{"a": "caf\xe9"}, m{"a": "caf\uFFFD"}),
	}
}
