package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

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
	// rejected is the field that the server names if it gets the emission
	// unrepaired. If empty, the server accepts it.
	rejected string
	// want changes the Event that has what was emitted into the Event that the
	// server must have. If nil, they are the same.
	want func(*eventsv1.Event)
	// wantName is a pattern for the name of the Event, in which HASH stands for
	// the hash of the key. If empty, it is the object's name, a dot and the hash.
	wantName string
	// omitsAnnotations is set if the recorder omits annotations.
	omitsAnnotations bool
}

// contentTypes are the content types of clients. Patches are always JSON.
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
			row.requireUnrepaired(t, namespace)
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

// requireUnrepaired fails the test unless the server rejects an unrepaired emission.
// eventstest.Validate knows: see TestValidateAgreesWithTheServer.
func (row *wireRow) requireUnrepaired(t *testing.T, namespace string) {
	t.Helper()
	e := row.emission(namespace)
	event := e.event()
	event.EventTime = metav1.NowMicro()
	event.Name = e.regarding.Name + "." + string(e.regarding.UID[:8])
	if event.Namespace == "" {
		event.Namespace = namespace
	}
	wire, err := json.Marshal(event) // makes it valid UTF-8
	require.NoError(t, err)
	received := &eventsv1.Event{}
	require.NoError(t, json.Unmarshal(wire, received))
	var fields []string
	for _, problem := range eventstest.Validate(received) {
		fields = append(fields, problem.Field)
	}
	if row.rejected == "" {
		require.Empty(t, fields)
	} else {
		require.Contains(t, fields, row.rejected)
	}
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
	r = newRecording(t, config, events.Options{ReportingInstance: e.instance, ClusterNamespace: e.clusterNamespace})
	recorder := r.NewRecorder(scheme.Scheme, e.controller).(events.AnnotatedEventRecorder)
	var related runtime.Object // not a nil pointer in an interface
	if e.related != nil {
		related = e.related
	}
	return r, func() {
		recorder.AnnotatedEventf(e.regarding, related, e.annotations, e.eventtype, e.reason, e.action, e.note, e.args...)
	}
}

// requireOnServer fails the test unless the server has one Event about the
// object, with what the row wants, both API groups agree, and nothing is lost.
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
