package query

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/series"
)

// itemsOf returns the items of Events at t0 plus ten minutes, and then an error unless
// that is nil.
func itemsOf(failed error, events ...*eventsv1.Event) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		for _, event := range events {
			if !yield(FromEvent(event, t0.Add(10*time.Minute)), nil) {
				return
			}
		}
		if failed != nil {
			yield(nil, failed)
		}
	}
}

func TestSort(t *testing.T) {
	began := func(d time.Duration) func(*eventsv1.Event) { return func(e *eventsv1.Event) { e.EventTime = micro(d) } }
	events := []*eventsv1.Event{
		newEvent(named("b", "finished"), labeled("Finished"), recurred(100, time.Minute), reported("z", "", "Failed"), about("Pod", "b", "p", "")),
		newEvent(named("a", "single"), began(2*time.Minute), reported("y", "", "Other"), about("Pod", "a", "p", "")),
		newEvent(named("c", "fast"), labeled("Ongoing"), began(4*time.Minute), recurred(61, 5*time.Minute), reported("x", "", "BackOff"), about("Pod", "c", "p", "")),
		newEvent(named("a", "normal"), labeled("Ongoing"), recurred(2, 8*time.Minute), reported("x", "", "Other"), about("Job", "a", "p", ""), func(e *eventsv1.Event) { e.Type = "Normal" }),
		newEvent(named("c", "evicted"), labeled("Unknown"), began(3*time.Minute), recurred(2, 9*time.Minute), reported("z", "", "Failed"), about("Pod", "c", "p", "")),
		newEvent(named("c", "again"), began(2*time.Minute), reported("y", "", "Other"), about("Pod", "a", "p", "")), // equal to single, but for the name
		newEvent(named("b", "future"), labeled("Ongoing"), recurred(2, 24*time.Hour), reported("z", "", "Failed"), about("Pod", "b", "p", "")),
	}
	for order, want := range map[Order]string{
		ByState:      "normal fast evicted future finished single again",
		ByLast:       "evicted normal fast single again finished future",
		ByFirst:      "finished normal future single again evicted fast",
		ByCount:      "finished fast evicted normal future single again",
		ByRate:       "finished fast evicted normal future single again",
		ByType:       "evicted fast single again finished future normal",
		ByReason:     "fast evicted finished future normal single again",
		ByObject:     "normal single again finished future evicted fast",
		ByController: "normal fast single again evicted finished future",
		ByName:       "normal single finished future again evicted fast",
	} {
		t.Run(string(order), func(t *testing.T) {
			assert.Equal(t, want, strings.Join(names(t, Sort(itemsOf(nil, events...), order, 0)), " "))
			assert.Equal(t, strings.Fields(want)[:2], names(t, Sort(itemsOf(nil, events...), order, 2)))
		})
	}
	assert.Len(t, Orders(), 10)
	require.Error(t, errorOf(t, Sort(itemsOf(errors.New("broken"), events...), ByLast, 0)))
	for item, err := range SortBy(itemsOf(nil, events...), func(i *Item) string { return i.Name }, strings.Compare, 0) {
		require.NoError(t, err)
		assert.Equal(t, "again", item.Name)
		break
	}
}

// A sorted item is the same as one that was not encoded.
func TestSortKeepsItems(t *testing.T) {
	event := newEvent(labeled("Ongoing"), recurred(7, time.Minute+time.Microsecond), related("Node", "", "n1", "u1"))
	event.Annotations = map[string]string{"a": "b", series.AnnotationLastNote: "ümläut"}
	event.ResourceVersion, event.UID = "7", "u"
	event.SetGroupVersionKind(eventKind)
	want := FromEvent(event, t0.Add(10*time.Minute))
	for item, err := range Sort(itemsOf(nil, event), ByLast, 0) {
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("%+v", want.Series), fmt.Sprintf("%+v", item.Series)) // but for time zones
		assert.Equal(t, want.At, item.At)
		assert.Equal(t, event.Labels, item.Event.Labels)
		assert.Equal(t, event.TypeMeta, item.Event.TypeMeta)
		assert.True(t, event.Series.LastObservedTime.Equal(&item.Event.Series.LastObservedTime))
	}
}

// A limit bounds the memory, and the result is the same.
func TestSortWithLimit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var events []*eventsv1.Event
	for i := range 1000 {
		events = append(events, newEvent(named("shop", fmt.Sprint(i)), recurred(2+r.Int32N(50), 0)))
	}
	all := names(t, Sort(itemsOf(nil, events...), ByCount, 0))
	for _, limit := range []int{1, 10, 100, 999, 1000, 5000} {
		assert.Equal(t, all[:min(limit, len(all))], names(t, Sort(itemsOf(nil, events...), ByCount, limit)))
	}
}

// manyPages is an API server with many Events, in pages of the default size. It has
// encoded them as protobuf, as kube-apiserver does.
func manyPages(t testing.TB, events int) *kubernetes.Clientset {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	require.True(t, ok)
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, eventsv1.SchemeGroupVersion)
	var pages [][]byte
	for n := 0; n < events; {
		list := &eventsv1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for range DefaultPageSize {
			list.Items = append(list.Items, *manyEvent(n))
			n++
		}
		if n < events {
			list.Continue = strconv.Itoa(len(pages) + 1)
		}
		page, err := runtime.Encode(encoder, list)
		require.NoError(t, err)
		pages = append(pages, page)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("continue")) // 0 for the first page
		w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
		if _, err := w.Write(pages[page]); err != nil {
			panic(err)
		}
	}))
	t.Cleanup(server.Close)
	clients, err := kubernetes.NewForConfig(&restclient.Config{Host: server.URL})
	require.NoError(t, err)
	return clients
}

func manyEvent(i int) *eventsv1.Event {
	event := newEvent(recurred(int32(2+i*7919%1000), time.Duration(i*104729%1800)*time.Second), labeled("Ongoing"))
	event.Namespace = fmt.Sprintf("namespace-%02d", i/10000)
	event.Name = fmt.Sprintf("checkout-7d9c8b5f6-%05d.18a1b2c3d4e5f601", i)
	event.UID = "0b5c2e8e-6a0b-4f6e-9c58-2f1f0a3d7b11"
	event.ResourceVersion = strconv.Itoa(1_000_000 + i)
	event.ReportingInstance = "kubelet-node-0017.example.internal"
	event.Regarding = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: event.Namespace,
		Name: fmt.Sprintf("checkout-7d9c8b5f6-%05d", i), UID: "6f0a2d54-8d3e-4b53-8b3b-7a7a2b9d2f10", FieldPath: "spec.containers{checkout}"}
	event.Note = "Back-off restarting failed container checkout in pod checkout-7d9c8b5f6 (6f0a2d54-8d3e-4b53-8b3b-7a7a2b9d2f10)"
	event.Annotations = map[string]string{series.AnnotationHeartbeat: "30m"}
	event.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Operation: "Update", APIVersion: "events.k8s.io/v1", Time: new(metav1.Time),
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:action":{},"f:eventTime":{},"f:note":{},"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:reportingInstance":{},"f:series":{},"f:type":{}}`)}}}
	return event
}

func liveBytes() int {
	goruntime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// A list needs the memory of a page, and a sorted one that of the encoded Events.
func TestMemory(t *testing.T) {
	const many = 20_000
	reader := NewReader(manyPages(t, many), Options{})
	q := Query{States: []series.State{series.Ongoing}, Types: []string{"Warning"}, At: t0.Add(30 * time.Minute)}
	before := liveBytes()
	n := 0
	for _, err := range reader.List(t.Context(), q) {
		require.NoError(t, err)
		if n++; n == many/2 {
			assert.Less(t, liveBytes(), before+10<<20)
		}
	}
	require.Equal(t, many, n)

	begin := time.Now()
	var last int32
	for item, err := range Sort(reader.List(t.Context(), q), ByCount, 0) {
		require.NoError(t, err)
		if n == many {
			sorted := time.Since(begin)
			perEvent := (liveBytes() - before) / many
			t.Logf("listed and sorted in %v, with %d bytes per Event", sorted, perEvent)
			assert.Less(t, perEvent, 800)
		} else {
			require.LessOrEqual(t, item.Count, last)
		}
		last = item.Count
		n--
	}
	require.Zero(t, n)
}

// BenchmarkSort lists, selects, and sorts 100,000 Events, whose server runs in the same
// process.
func BenchmarkSort(b *testing.B) {
	reader := NewReader(manyPages(b, 100_000), Options{})
	for b.Loop() {
		for _, err := range Sort(reader.List(b.Context(), Query{States: []series.State{series.Ongoing}, At: t0}), ByState, 0) {
			require.NoError(b, err)
		}
	}
}
