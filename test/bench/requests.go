package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Requests are the CPU times of a real API server for each kind of write.
type Requests struct {
	Create         time.Duration `json:"create"`         // in protobuf
	MergePatch     time.Duration `json:"mergePatch"`     // in events.k8s.io/v1, as this recorder
	StrategicPatch time.Duration `json:"strategicPatch"` // in core/v1, as tools/record
}

// MeasureRequests makes writes one at a time, so that they take enough CPU for a mean.
func MeasureRequests(t *testing.T, enough time.Duration) (r Requests) {
	t.Helper()
	port := apiserver.FreePort(t)
	server := apiserver.Start(t, controlplane.Options{EtcdPort: port})
	config := apiserver.ConfigOf(t, server)
	config.ContentType = runtime.ContentTypeProtobuf
	clients, etcd := apiserver.ClientsetFor(t, config), etcdAt(port)
	cost := func(call func(i int) error) time.Duration {
		return etcd.cost(enough, func(i int) { must(call(i)) })
	}
	name := func(i int) string { return fmt.Sprintf("pod-of-a-deployment-%06d.0123456789abcdef", i) }
	r.Create = cost(func(i int) error {
		_, err := clients.EventsV1().Events(metav1.NamespaceDefault).Create(t.Context(), &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name(i)}, EventTime: metav1.NowMicro(), Type: corev1.EventTypeWarning, Action: action, Reason: reason,
			ReportingController: controller, ReportingInstance: controller + "-1", Note: fmt.Sprintf(note, noteArgs...),
			Regarding: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Pod", Namespace: metav1.NamespaceDefault, Name: strings.TrimSuffix(name(i), ".0123456789abcdef"),
				UID: "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f", ResourceVersion: "100000000",
			},
		}, metav1.CreateOptions{})
		return err
	})
	now := func() string { return metav1.NowMicro().UTC().Format(metav1.RFC3339Micro) }
	r.MergePatch = cost(func(i int) error {
		patch := fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":%q}}`, i+2, now())
		_, err := clients.EventsV1().Events(metav1.NamespaceDefault).Patch(t.Context(), name(0), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	r.StrategicPatch = cost(func(i int) error {
		patch := fmt.Sprintf(`{"count":%d,"lastTimestamp":%q}`, i+2, time.Now().UTC().Add(time.Duration(i)*time.Second).Format(time.RFC3339))
		_, err := clients.CoreV1().Events(metav1.NamespaceDefault).Patch(t.Context(), name(0), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	t.Logf("create %v, merge patch %v, strategic patch %v", r.Create, r.MergePatch, r.StrategicPatch)
	return r
}

// costOf returns the CPU time of the server for all requests of a fleet, as measured for each
// kind. Those that read Events cost as much for each Event as with the largest number of them.
func (r *Results) costOf(f *Fleet) time.Duration {
	patch := r.Requests.StrategicPatch
	if f.Recorder == Ours {
		patch = r.Requests.MergePatch
	}
	cpu := time.Duration(f.Requests["create"])*r.Requests.Create + time.Duration(f.Requests["patch"])*patch
	if len(r.List) > 0 {
		l := r.List[len(r.List)-1]
		reads := float64(f.Read["count"])*float64(l.Count) + float64(f.Read["list"])*float64(l.List)
		cpu += time.Duration(f.Requests["ask"])*l.Ask + time.Duration(reads/float64(l.Events))
	}
	return cpu
}
