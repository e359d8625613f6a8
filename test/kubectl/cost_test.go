//go:build linux && !race

package kubectl

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// serveEvents serves lists of n Events in pages, as kube-apiserver encodes them.
func serveEvents(t *testing.T, n int) (kubeconfig string) {
	t.Helper()
	now, fields := time.Now(), &metav1.FieldsV1{}
	require.NoError(t, fields.UnmarshalJSON([]byte(`{"f:action":{},"f:note":{},"f:reason":{},"f:regarding":{},"f:reportingController":{},"f:series":{".":{},"f:count":{},"f:lastObservedTime":{}},"f:type":{}}`)))
	event := func(i int) eventsv1.Event {
		e := *newEvent("shop", fmt.Sprintf("checkout-%d.%x", i, now.UnixNano()), objectIn("shop", "Pod", fmt.Sprintf("checkout-%d", i%2000)))
		e.UID, e.ResourceVersion, e.CreationTimestamp = "0b15ecc7-dc9d-4bda-8a7f-0123456789ab", strconv.Itoa(i+1), metav1.NewTime(now)
		e.EventTime = metav1.NewMicroTime(now.Add(-time.Duration(i) * time.Millisecond))
		e.Note = "Back-off restarting failed container app in pod checkout-0_shop: " + strings.Repeat("x", i%100)
		e.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kubelet", Operation: "Update", APIVersion: "events.k8s.io/v1", FieldsType: "FieldsV1",
			FieldsV1: fields,
		}}
		if i%3 > 0 {
			e.Series = &eventsv1.EventSeries{Count: int32(2 + i%1000), LastObservedTime: metav1.NewMicroTime(now)}
		}
		return e
	}
	codec := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), eventsv1.SchemeGroupVersion)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			limit = n
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("continue")) // 0 without one
		list := &eventsv1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for i := from; i < min(from+limit, n); i++ {
			list.Items = append(list.Items, event(i))
		}
		if to := from + limit; to < n {
			remaining := int64(n - to)
			list.Continue, list.RemainingItemCount = strconv.Itoa(to), &remaining
		}
		var b bytes.Buffer
		if err := codec.Encode(list, &b); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
		_, _ = w.Write(b.Bytes())
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server.URL)
}

// measuring makes this program run another one, and write its cost to stderr. Linux counts the
// memory of the process that starts a program, so this one starts no program itself.
const measuring = "EVENTSERIES_MEASURE"

func init() {
	program := os.Getenv(measuring)
	if program == "" {
		return
	}
	cmd := exec.CommandContext(context.Background(), program, os.Args[1:]...)
	cmd.Stdout = os.Stdout
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	fmt.Fprintln(os.Stderr, int64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()), usage.Maxrss)
	os.Exit(0)
}

// measure runs kubectl series, and returns its processor time and its peak memory.
func measure(t *testing.T, kubeconfig string, args ...string) (cpu time.Duration, kilobytes int64, out string) {
	t.Helper()
	cmd := command(t.Context(), t, kubeconfig, args...)
	cmd.Env = append(cmd.Env, measuring+"="+cmd.Path, "GOGC=100", "GOMEMLIMIT=off") // make test sets others
	var err error
	cmd.Path, err = os.Executable()
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), &stderr)
	_, err = fmt.Sscan(stderr.String(), &cpu, &kilobytes)
	require.NoError(t, err)
	return cpu, kilobytes, stdout.String()
}

// TestGuardCost limits the processor time, because machines are shared, and the memory.
func TestGuardCost(t *testing.T) {
	const n = 100_000
	kubeconfig := serveEvents(t, n)
	for _, test := range []struct {
		args  string
		limit time.Duration
	}{
		{"-A", 5 * time.Second},
		{"-A --sort-by count --limit 20", 5 * time.Second},
		{"top objects -A", 5 * time.Second},
		{"-A -o json", 10 * time.Second}, // writes 120 MB
	} {
		args := strings.Fields(test.args)
		cpu, kilobytes, out := measure(t, kubeconfig, args...)
		t.Logf("%v: %v of a processor, %d MB", args, cpu.Round(time.Millisecond), kilobytes>>10)
		assert.Less(t, cpu, test.limit, args)
		assert.Less(t, kilobytes, int64(240<<10), "%v: kB", args) // 170 to 205 MB: the collector begins at different times
		if len(args) == 1 {
			assert.Len(t, lines(out), n+1)
		}
	}
}

func TestGuardStart(t *testing.T) {
	kubeconfig := serveEvents(t, 1)
	for _, args := range [][]string{{"--help"}, {"__complete", "--state", ""}, {"-A"}} {
		best := time.Hour
		for range 10 {
			began := time.Now()
			require.Zero(t, run(t, kubeconfig, args...).code)
			best = min(best, time.Since(began))
		}
		t.Logf("%v: %v", args, best)
		assert.Less(t, best, 150*time.Millisecond, args)
	}
}
