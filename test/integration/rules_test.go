package integration

import (
	"encoding/json"
	"errors"
	"maps"
	"net/url"
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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
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
	rows := ruleRows()
	if apiserver.Minor(t) < 20 {
		delete(rows, "cluster-scoped object in default")
	}
	for name, change := range rows {
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
	assert.Greater(t, len(rows)-accepted, 30)
}

func TestPatchesAgreeWithTheServer(t *testing.T) {
	t.Parallel()
	apiserver.Since(t, 25, "lets clients change immutable fields of Events")
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
	all := maps.Clone(sinks)
	all["either"] = eitherSink
	all["core, because events.k8s.io is not served"] = func(clients *kubernetes.Clientset) events.EventSink {
		unserved := fake.NewClientset()
		unserved.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(eventsv1.Resource("events"), "")
		})
		return &compat.Sink{EventsV1: unserved.EventsV1(), CoreV1: clients.CoreV1()}
	}
	for name, sink := range all {
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
