package timeline

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/group"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 22, 7, 42, 10, 0, time.UTC)

// event describes a series of the example.
type event struct {
	regarding, related       string
	controller, reason, kind string
	note, last               string
	state                    series.State
	from, to                 time.Duration // before now
	count                    int32
}

func (e event) item() *query.Item {
	object := func(s string) series.Reference {
		kind, name, _ := strings.Cut(s, "/")
		ref := series.Reference{Kind: kind, Name: name, Namespace: "shop", UID: types.UID("uid-of-" + name)}
		if kind == "" || kind == "Node" {
			ref.Namespace = ""
		}
		if kind == "" {
			ref = series.Reference{}
		}
		return ref
	}
	s := series.Series{
		Key: series.Key{
			Regarding: object(e.regarding), Related: object(e.related), Type: e.kind, Action: "Act",
			Reason: e.reason, ReportingController: e.controller, ReportingInstance: e.controller + "-1",
		},
		State: e.state, Namespace: "shop", Note: e.note, LastNote: e.last, Count: max(e.count, 1),
		First: now.Add(-e.from), Last: now.Add(-e.to), Heartbeat: 30 * time.Minute,
	}
	s.Name = strings.ToLower(e.reason)
	if e.count == 0 {
		s.Last = s.First
	}
	return query.FromEvent(s.Event(), now)
}

// example is an incident: the volume of a Pod is full.
func example() []*query.Item {
	var items []*query.Item
	for _, e := range []event{
		{regarding: "Pod/checkout-0", controller: "kubelet", kind: "Warning", reason: "BackOff", state: series.Ongoing, count: 5109,
			note: "Back-off restarting failed container app", from: 71 * time.Minute, to: 4 * time.Minute},
		{regarding: "Pod/checkout-0", related: "Node/worker-3", controller: "default-scheduler", kind: "Normal", reason: "Scheduled",
			note: "Successfully assigned shop/checkout-0 to worker-3", from: 90 * time.Minute},
		{regarding: "StatefulSet/checkout", related: "Pod/checkout-0", controller: "statefulset-controller", kind: "Normal", reason: "SuccessfulCreate",
			note: "create Pod checkout-0 in StatefulSet checkout successful", from: 91 * time.Minute},
		{regarding: "Node/worker-3", related: "Pod/checkout-0", controller: "kubelet", kind: "Warning", reason: "EvictionThresholdMet", state: series.Finished, count: 12,
			note: "Attempting to reclaim ephemeral-storage", from: 40 * time.Minute, to: 25 * time.Minute},
		{regarding: "PersistentVolumeClaim/data-checkout-0", related: "Pod/checkout-0", controller: "example.com/backup", kind: "Warning", reason: "SnapshotFailed", state: series.Unknown, count: 88,
			note: "snapshot of data-checkout-0 failed: quota exceeded (71 of 70 GiB)", last: "snapshot of data-checkout-0 failed: quota exceeded (93 of 70 GiB)", from: 80 * time.Minute, to: 52 * time.Minute},
		{regarding: "Pod/checkout-0", controller: "kubelet", kind: "Normal", reason: "Pulled", state: series.Ongoing, count: 14,
			note: "Container image \"registry.example.com/checkout:1.4.2\" already present on machine", from: 72 * time.Minute, to: 4 * time.Minute},
		{regarding: "Pod/checkout-0", controller: "kubelet", kind: "Warning", reason: "Failed",
			note: "Error: <script>alert(1)</script> & \x1b[31mred\x1b[0m\nexit status 1: no space left on device: /var/lib/checkout/" + strings.Repeat("0123456789", 12), from: 71*time.Minute + 9*time.Second},
	} {
		items = append(items, e.item())
	}
	return items
}

func checkout() *Timeline {
	return New(Options{Kind: "Pod", Namespace: "shop", Name: "checkout-0", Now: now, Items: example(), Remarks: []string{"An earlier Pod had the same name."}})
}

// quiet is an object that has been quiet for longer than its series lasted.
func quiet() *Timeline {
	var items []*query.Item
	for _, e := range []event{
		{regarding: "Pod/a", controller: "kubelet", kind: "Warning", reason: "BackOff", state: series.Finished, count: 20, note: "Back-off", from: 200 * time.Minute, to: 150 * time.Minute},
		{regarding: "Pod/a", controller: "kubelet", kind: "Normal", reason: "Pulled", note: "pulled", from: 205 * time.Minute},
	} {
		items = append(items, e.item())
	}
	return New(Options{Kind: "Pod", Namespace: "shop", Name: "a", Now: now, Items: items})
}

// rollout is a Deployment of 100 Pods of which 40 crash: 240 series of four reasons, and one of each of
// 60 other reasons.
func rollout() *Timeline {
	var items []*query.Item
	add := func(e event) { items = append(items, e.item()) }
	for i := range 100 {
		pod, ago := fmt.Sprintf("Pod/web-6d4cf9b7c-%05d", i), time.Duration(i)*time.Second
		add(event{regarding: pod, controller: "default-scheduler", kind: "Normal", reason: "Scheduled", note: "Successfully assigned", from: 20*time.Minute + ago})
		if i < 40 {
			add(event{regarding: pod, controller: "kubelet", kind: "Warning", reason: "BackOff", state: series.Ongoing, count: int32(2 + i), note: "Back-off restarting failed container app", from: 12*time.Minute + ago, to: ago})
			add(event{regarding: pod, controller: "kubelet", kind: "Warning", reason: "Unhealthy", state: series.Finished, count: 9, note: "Readiness probe failed", from: 19 * time.Minute, to: 13 * time.Minute})
		} else {
			add(event{regarding: pod, controller: "kubelet", kind: "Normal", reason: "Started", note: "Started container app", from: 19*time.Minute + ago})
		}
	}
	for i := range 60 {
		add(event{regarding: fmt.Sprintf("ConfigMap/c%d", i), controller: "example.com/c", kind: "Normal", reason: fmt.Sprintf("Reason%02d", i), note: "note", from: time.Duration(30+i) * time.Minute})
	}
	return New(Options{
		Kind: "Deployment", Namespace: "shop", Name: "web", Now: now, Items: items, Groups: group.Of(items, group.Reason, nil, 25),
		Paths: []string{"Deployment/web → Node/worker-3 (node)"}, Next: []Hop{{"kubectl series timeline node/worker-3", "node"}},
	})
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "go test -update writes %s", path)
}

func TestGoldenFiles(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"checkout.html": checkout().WriteHTML,
		"checkout.svg":  checkout().WriteSVG,
		"checkout.txt":  func(w io.Writer) error { return checkout().WriteText(w, terminal.Terminal{}) },
		"80.txt":        func(w io.Writer) error { return checkout().WriteText(w, terminal.Terminal{Width: 80}) },
		"colors.txt":    func(w io.Writer) error { return checkout().WriteText(w, terminal.Terminal{Width: 140, Color: true}) },
		"groups.html":   rollout().WriteHTML,
		"groups.svg":    rollout().WriteSVG,
		"groups.txt":    func(w io.Writer) error { return rollout().WriteText(w, terminal.Terminal{Width: 100}) },
		"quiet.html":    quiet().WriteHTML,
		"quiet.svg":     quiet().WriteSVG,
		"quiet.txt":     func(w io.Writer) error { return quiet().WriteText(w, terminal.Terminal{Width: 100}) },
		"empty.html":    New(Options{Kind: "Pod", Name: "none", Now: now}).WriteHTML,
		"empty.svg":     New(Options{Kind: "Pod", Name: "none", Now: now}).WriteSVG,
	} {
		var b bytes.Buffer
		require.NoError(t, write(&b), name)
		golden(t, name, b.Bytes())
		if !strings.HasSuffix(name, ".txt") {
			assert.NotContains(t, b.String(), "<script", name)
			assert.NotContains(t, strings.ReplaceAll(b.String(), `xmlns="http://www.w3.org/2000/svg"`, ""), "http://", name)
		}
		if strings.HasSuffix(name, ".svg") {
			assert.NoError(t, xml.Unmarshal(b.Bytes(), new(struct{})), name)
		}
	}
}

func TestTextFitsAnyTerminal(t *testing.T) {
	for width := 1; width < 160; width++ {
		var b strings.Builder
		require.NoError(t, checkout().WriteText(&b, terminal.Terminal{Width: width}))
		for line := range strings.Lines(b.String()) {
			assert.LessOrEqual(t, text.Width(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
}

func TestAxisSeparatesItsEnds(t *testing.T) {
	quiet := event{kind: "Normal", state: series.Finished, count: 5, from: 50 * time.Second, to: 40 * time.Second}
	assert.Equal(t, "07:41:20     now", New(Options{Items: []*query.Item{quiet.item()}, Now: now}).axis(narrowBars))
}

func TestScale(t *testing.T) {
	at := func(first, last time.Duration, state series.State) *query.Item {
		e := event{kind: "Normal", from: first, to: last, state: state}
		if state != series.Singleton {
			e.count = 5
		}
		return e.item()
	}
	for name, test := range map[string]struct {
		items      []*query.Item
		span       string
		latest     string  // how long ago
		start, end float64 // of the first row
		ticks      []string
	}{
		"ongoing: to now": {
			items: []*query.Item{at(40*time.Minute, 10*time.Minute, series.Ongoing), at(20*time.Minute, 0, series.Singleton)},
			span:  "2026-11-22 07:02:10 to 07:42:10 UTC (40m)", latest: "10m", end: 1, ticks: []string{"07:10", "07:20", "07:30", "07:40"},
		},
		"quiet for longer": {
			items: []*query.Item{at(50*time.Hour, 49*time.Hour, series.Finished)},
			span:  "2026-11-20 05:42:10 to 06:42:10 UTC (60m)", latest: "2d1h", end: breakAt, ticks: []string{"05:50", "06:00", "06:10", "06:20", "06:30", "06:40"},
		},
		"days": {
			items: []*query.Item{at(70*time.Hour, 0, series.Ongoing)},
			span:  "2026-11-19 09:42:10 to 2026-11-22 07:42:10 UTC (2d22h)", latest: "0s", end: 1,
			ticks: []string{"Nov 19 12:00", "Nov 20 00:00", "Nov 20 12:00", "Nov 21 00:00", "Nov 21 12:00", "Nov 22 00:00"},
		},
		"one moment": {
			items: []*query.Item{at(0, 0, series.Singleton)},
			span:  "2026-11-22 07:42:10 to 07:42:20 UTC (10s)", latest: "0s", ticks: []string{"07:42:10", "07:42:12", "07:42:14", "07:42:16", "07:42:18", "07:42:20"},
		},
		"a clock ahead of ours": {
			items: []*query.Item{at(time.Minute, -time.Minute, series.Ongoing)},
			span:  "2026-11-22 07:41:10 to 07:43:10 UTC (2m)", latest: "0s", end: 1, ticks: []string{"07:41:30", "07:42:00", "07:42:30", "07:43:00"},
		},
		"a time in the future": {
			items: []*query.Item{at(time.Minute, -24*time.Hour, series.Ongoing), at(40*time.Minute, 20*time.Minute, series.Finished)},
			span:  "2026-11-22 07:02:10 to 07:42:10 UTC (40m)", latest: "20m", end: 0.5, ticks: []string{"07:10", "07:20", "07:30", "07:40"},
		},
		"years": {
			items: []*query.Item{query.FromEvent(&eventsv1.Event{
				DeprecatedFirstTimestamp: metav1.NewTime(time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)), DeprecatedLastTimestamp: metav1.NewTime(now), DeprecatedCount: 2,
			}, now)},
			span: "1970-01-02 00:00:00 to 2026-11-22 07:42:10 UTC (56y)", latest: "0s", end: 1, ticks: []string{"May 1973", "Feb 1983", "Dec 1992", "Oct 2002", "Aug 2012", "May 2022"},
		},
		"only a time in the future": {
			items: []*query.Item{at(-25*time.Hour, -26*time.Hour, series.Ongoing)}, start: 1, end: 1, span: "2026-11-22 07:42:10 UTC",
		},
		"nothing": {span: "2026-11-22 07:42:10 UTC"},
		"no time": {
			items: []*query.Item{query.FromEvent(&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, now), at(time.Minute, 0, series.Ongoing)},
			span:  "2026-11-22 07:41:10 to 07:42:10 UTC (60s)", latest: "0s", ticks: []string{"07:41:10", "07:41:20", "07:41:30", "07:41:40", "07:41:50", "07:42:00", "07:42:10"},
		},
	} {
		timeline := New(Options{Items: test.items, Now: now})
		assert.Equal(t, test.span, timeline.span(), name)
		if test.latest != "" {
			assert.Contains(t, timeline.summary(), " ongoing, latest occurrence "+test.latest+" ago, ", name)
		} else {
			assert.NotContains(t, timeline.summary(), "latest", name)
		}
		var ticks []string
		for _, tick := range timeline.Ticks {
			ticks = append(ticks, tick.Label)
		}
		assert.Equal(t, test.ticks, ticks, name)
		if len(timeline.Rows) > 0 {
			assert.InDelta(t, test.start, timeline.Rows[0].Start, 1e-9, name)
			assert.InDelta(t, test.end, timeline.Rows[0].End, 1e-9, name)
		}
	}
}

func TestBars(t *testing.T) {
	row := func(kind string, state series.State, start, end float64) string {
		b := bar{state: state, warning: kind == corev1.EventTypeWarning, Start: start, Known: end, End: end, Drawn: true}
		return b.draw(10)
	}
	assumed := func(kind string, known float64, partly bool) string {
		b := bar{state: series.Ongoing, warning: kind == corev1.EventTypeWarning, Known: known, End: 1, Drawn: true, partly: partly}
		return b.draw(10)
	}
	for _, test := range []struct{ want, got string }{
		{"●         ", row(corev1.EventTypeWarning, series.Singleton, 0, 0)},
		{"         ○", row(corev1.EventTypeNormal, series.Singleton, 1, 1)},
		{"  ┣━━━━━━▶", row(corev1.EventTypeWarning, series.Ongoing, 0.2, 1)},
		{"  ├──▷    ", row(corev1.EventTypeNormal, series.Ongoing, 0.25, 0.55)},
		{"┣━━━━╍╍╍╍▶", assumed(corev1.EventTypeWarning, 0.4, false)},
		{"├─────┄┄┄▷", assumed(corev1.EventTypeNormal, 0.5, false)},
		{"┣━━━━╍╍╍╍╍", assumed(corev1.EventTypeWarning, 0.4, true)},
		{"├───┤     ", row(corev1.EventTypeNormal, series.Finished, 0, 0.4)},
		{"┣━━━?     ", row(corev1.EventTypeWarning, series.Unknown, 0, 0.4)},
		{"    ┫     ", row(corev1.EventTypeWarning, series.Finished, 0.41, 0.49)},
	} {
		assert.Equal(t, test.want, test.got)
	}
}
