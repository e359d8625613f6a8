package integration

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
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

// Limits of the API server, in bytes.
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
