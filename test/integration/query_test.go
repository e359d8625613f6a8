package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clientgoevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// emitAsEveryone emits n occurrences about a Pod with each recorder, one after the other, and
// returns the controllers. Each of them has one Event about each object.
func emitAsEveryone(t *testing.T, clients *kubernetes.Clientset, objects ...runtime.Object) (controllers map[string]query.Recorder) {
	t.Helper()
	const n = 3
	controllers = map[string]query.Recorder{}
	for name, sink := range sinks {
		controller := "example.com/ours-" + strings.TrimSuffix(name, ".k8s.io")
		controllers[controller] = query.Eventseries
		r := startRecording(t, sink, apiserver.Config(t), events.Options{})
		for _, object := range objects {
			for range n {
				r.NewRecorder(scheme.Scheme, controller).Eventf(object, podIn("elsewhere", "related"), corev1.EventTypeWarning, "Tested", "Testing", "it was tested")
			}
		}
		r.flush(t)
	}

	broadcaster := clientgoevents.NewBroadcaster(&clientgoevents.EventSinkImpl{Interface: clients.EventsV1()})
	t.Cleanup(broadcaster.Shutdown)
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	recorder := broadcaster.NewRecorder(scheme.Scheme, "tools-events")
	controllers["tools-events"] = query.ToolsEvents

	legacyBroadcaster := record.NewBroadcaster()
	t.Cleanup(legacyBroadcaster.Shutdown)
	legacyBroadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events(metav1.NamespaceAll)})
	legacyRecorder := legacyBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "tools-record", Host: "n1"})
	controllers["tools-record"] = query.ToolsRecord

	for _, object := range objects {
		count := func(c require.TestingT, controller string) (count int) {
			list, err := clients.EventsV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{FieldSelector: "reportingController=" + controller})
			require.NoError(c, err)
			for _, event := range list.Items {
				if event.Regarding.UID == object.(metav1.Object).GetUID() {
					count = max(occurrences(&event), int(event.DeprecatedCount))
				}
			}
			return count
		}
		for i := range n {
			recorder.Eventf(object, podIn("elsewhere", "related"), corev1.EventTypeWarning, "Tested", "Testing", "it was tested")
			legacyRecorder.Event(object, corev1.EventTypeWarning, "Tested", "it was tested")
			eventually(t, func(c *assert.CollectT) {
				assert.Equal(c, min(i+1, 2), count(c, "tools-events"), "it does not write the third one yet")
				assert.Equal(c, i+1, count(c, "tools-record"))
			})
		}
	}
	return controllers
}

// TestQueryReadsEveryRecorder reads what four recorders write, through both API groups.
func TestQueryReadsEveryRecorder(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	pod := podIn(namespace, "checkout-0")
	earlier := pod.DeepCopy()
	earlier.UID += "-earlier"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + namespace, UID: types.UID("node-of-" + namespace)}}
	controllers := emitAsEveryone(t, clients, pod, earlier, node)
	_, err := clients.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "old"},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "checkout-0"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	noEvents := apiserver.Config(t)
	noEvents.Wrap(withoutEventsV1)
	for name, clients := range map[string]*kubernetes.Clientset{"events.k8s.io/v1": clients, "core/v1": apiserver.ClientsetFor(t, noEvents)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := query.NewReader(clients, query.Options{PageSize: 3, OnWarning: func(err error) { assert.NoError(t, err) }})
			list := func(q query.Query) (found []*query.Item) {
				for item, err := range reader.List(t.Context(), q) {
					require.NoError(t, err)
					found = append(found, item)
				}
				return found
			}

			all := list(query.Query{Namespaces: []string{namespace}})
			require.Len(t, all, 2*len(controllers)+1)
			for _, item := range all {
				require.NoError(t, item.Problem)
				if item.Name == "old" {
					assert.Equal(t, query.Other, item.Recorder)
					assert.Equal(t, series.Singleton, item.State)
					assert.Equal(t, item.Event.CreationTimestamp.Time, item.First)
					continue
				}
				want := int32(3)
				if item.Controller() == "tools-events" {
					want = 2
				}
				assert.Equal(t, want, item.Count, item.Controller())
				assert.Equal(t, controllers[item.Controller()], item.Recorder)
				assert.Equal(t, series.Ongoing, item.State)
				assert.Equal(t, "it was tested", item.Note)
				if seconds := item.Last.Sub(item.First).Seconds(); seconds > 0 {
					assert.InDelta(t, float64(want-1)/seconds, item.Rate(), 1e-9)
				}
			}

			// Selection on the server loses and adds nothing.
			object := query.Object{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "checkout-0"}
			one := object
			one.UID = pod.UID
			inNamespace := []string{namespace}
			for name, q := range map[string]query.Query{
				"Pod":             {Objects: []query.Object{object}, Role: query.Regarding},
				"Pod by UID":      {Objects: []query.Object{one}, Role: query.Regarding},
				"two Pods by UID": {Objects: []query.Object{{UID: earlier.UID}, one}, Role: query.Regarding},
				"either":          {Objects: []query.Object{one}},
				"ongoing":         {Namespaces: inNamespace, States: []series.State{series.Ongoing}},
				"finished":        {Namespaces: inNamespace, States: []series.State{series.Finished}},
				"singletons":      {Namespaces: inNamespace, States: []series.State{series.Singleton}},
				"stale":           {Namespaces: inNamespace, States: []series.State{series.Unknown}, At: time.Now().Add(time.Hour)},
				"legacy":          {Namespaces: inNamespace, Controllers: []string{"tools-record"}, Reasons: []string{"Tested"}, Types: []string{"Warning"}},
				"controllers":     {Namespaces: inNamespace, Controllers: []string{"tools-record", "tools-events"}, Actions: []string{"Testing"}},
			} {
				want := []string{}
				for _, item := range all {
					if !q.At.IsZero() {
						item = query.FromEvent(item.Event, q.At)
					}
					if q.Matches(item) {
						want = append(want, item.Name)
					}
				}
				got := []string{}
				for _, item := range list(q) {
					got = append(got, item.Name)
				}
				assert.ElementsMatch(t, want, got, name)
				assert.Equal(t, name == "finished", len(want) == 0, name)
			}

			assert.Len(t, list(query.Query{Namespaces: inNamespace, FieldSelector: "source=tools-record"}), 2)

			// Events about a Node are in two namespaces.
			found := list(query.Query{Objects: []query.Object{{Kind: "Node", Name: node.Name, ClusterScoped: true}}, Role: query.Regarding})
			assert.Len(t, found, len(controllers))
			found = list(query.Query{Objects: []query.Object{{Kind: "Pod", Namespace: "elsewhere", Name: "related", UID: "uid-of-elsewhere-related"}}, Role: query.Related})
			assert.GreaterOrEqual(t, len(found), 3*3)
		})
	}
}

// TestQueryAcrossRestartsAndCompactions restarts the server during a watch, and compacts etcd while
// the watch is interrupted and in the middle of a list.
func TestQueryAcrossRestartsAndCompactions(t *testing.T) {
	t.Parallel()
	etcdPort := apiserver.FreePort(t)
	server := apiserver.Start(t, controlplane.Options{EtcdPort: etcdPort})
	config := apiserver.ConfigOf(t, server)
	clients := apiserver.ClientsetFor(t, config)
	proxy, err := faultproxy.Listen(t.Context(), server.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, proxy.Close()) }()
	config.Host = "https://" + proxy.Addr()
	reader := query.NewReader(apiserver.ClientsetFor(t, config), query.Options{PageSize: 2})
	write := func(name string, count int32) {
		t.Helper()
		event := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, EventTime: metav1.NowMicro(), Type: "Normal",
			ReportingController: controller, ReportingInstance: "i", Action: "Testing", Reason: "Tested",
			Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
		}
		if count == 1 {
			_, err := clients.EventsV1().Events("default").Create(t.Context(), event, metav1.CreateOptions{})
			require.NoError(t, err)
			return
		}
		patch := fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":"2040-01-02T03:04:05.000000Z"}}`, count)
		_, err := clients.EventsV1().Events("default").Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	remove := func(name string) {
		t.Helper()
		require.NoError(t, clients.EventsV1().Events("default").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	for i := range 5 {
		write(fmt.Sprintf("e%d", i), 1)
	}

	q := query.Query{Namespaces: []string{"default"}, Controllers: []string{controller}}
	changes := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		defer close(changes)
		for change, err := range reader.Watch(ctx, q) {
			text := fmt.Sprint(change.Type, " ", err)
			if change.Item != nil {
				text = fmt.Sprintf("%s %s %d", change.Type, change.Item.Name, change.Item.Count)
			}
			select {
			case changes <- text:
			case <-ctx.Done():
				return
			}
		}
	})
	expect := func(want ...string) {
		t.Helper()
		apiserver.Expect(t, changes, patience, want...)
	}
	expect("Added e0 1", "Added e1 1", "Added e2 1", "Added e3 1", "Added e4 1", "Synced <nil>")
	write("e0", 2)
	expect("Modified e0 2")

	require.NoError(t, server.Kill())
	require.NoError(t, server.Restart(t.Context()))
	write("e0", 3)
	write("e0", 4)
	remove("e1")
	write("e5", 1)
	expect("Modified e0 3", "Modified e0 4", "Deleted e1 1", "Added e5 1")

	proxy.Set(faultproxy.Fault{Refuse: true})
	proxy.Reset()
	require.NoError(t, server.Restart(t.Context()))
	write("e0", 5)
	write("e0", 6)
	remove("e2")
	remove("e3")
	write("e3", 1) // another Event of the same name
	write("e6", 1)
	apiserver.Compact(t, clients, etcdPort)
	proxy.Set(faultproxy.Fault{})
	expect("Modified e0 6", "Deleted e3 1", "Added e3 1", "Added e6 1", "Deleted e2 1")
	write("e6", 2)
	expect("Modified e6 2")
	cancel()
	for range changes {
	}

	// A list continues at a later version, and yields no Event twice.
	var names []string
	for item, err := range reader.List(t.Context(), query.Query{Namespaces: []string{"default"}}) {
		require.NoError(t, err)
		if item.Event.ReportingController != controller {
			continue
		}
		names = append(names, item.Name)
		if len(names) == 1 {
			remove("e5")
			write("e00", 1) // would be on a page that was read
			write("e7", 1)
			apiserver.Compact(t, clients, etcdPort)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "e00" }) // the first page may end here
	assert.Equal(t, []string{"e0", "e3", "e4", "e6", "e7"}, names)
}
