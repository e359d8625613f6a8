package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/timeline"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

func TestParseTime(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	defer func(zone *time.Location) { time.Local = zone }(time.Local)
	time.Local = berlin // an hour ahead
	now := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"":                          {},
		"90s":                       now.Add(-90 * time.Second),
		"1h30m":                     now.Add(-90 * time.Minute),
		"2d":                        now.Add(-48 * time.Hour),
		"1w2d3h":                    now.Add(-(9*24 + 3) * time.Hour),
		"2026-11-22T06:30:00Z":      now.Add(-30 * time.Minute),
		"2026-11-22T07:30:00+01:00": now.Add(-30 * time.Minute),
		"2026-11-22 07:30:00":       now.Add(-30 * time.Minute),
		"2026-11-22 07:30":          now.Add(-30 * time.Minute),
		"2026-11-22 06:30:00 UTC":   now.Add(-30 * time.Minute),
		"2026-11-22":                now.Add(-8 * time.Hour),
		"2026-07-01T12:00":          time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC), // in summer
	} {
		got, err := parseTime("--since", value, now)
		require.NoError(t, err, value)
		assert.True(t, want.Equal(got), "%s: %v", value, got)
	}
	for _, value := range []string{"yesterday", "1", "-5m", "5x", "1d5", "99999999999999d", "2026-13-01", "12:00"} {
		_, err := parseTime("--since", value, now)
		assert.ErrorContains(t, err, `--since "`+value+`": want a duration such as 30m`)
	}
	for _, value := range []string{"2026-11-22T07:00:01Z", "2026-11-22 08:30:00", "2026-11-23"} {
		_, err := parseTime("--since", value, now)
		assert.ErrorContains(t, err, `--since "`+value+`" is in the future: it is 2026-11-22T08:00:00+01:00`)
	}
}

func TestParseTargets(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []target
		err  string
	}{
		{nil, nil, ""},
		{[]string{"pod/a", "deploy/b"}, []target{{kind: "pod", name: "a"}, {kind: "deploy", name: "b"}}, ""},
		{[]string{"pod", "a", "b"}, []target{{kind: "pod", name: "a", listed: true}, {kind: "pod", name: "b", listed: true}}, ""},
		{[]string{"pod/a{app}"}, []target{{kind: "pod", name: "a", container: "app"}}, ""},
		{[]string{"pods,nodes"}, []target{{kind: "pods"}, {kind: "nodes"}}, ""},
		{[]string{"backups.example.com/a"}, []target{{kind: "backups.example.com", name: "a"}}, ""},
		{[]string{"pod/a", "b"}, nil, `"b": want KIND/NAME`},
		{[]string{"pod", "pod/a"}, nil, "not both"},
		{[]string{"/a"}, nil, "want KIND/NAME"},
		{[]string{"pod/a/b"}, nil, "want KIND/NAME"},
		{[]string{""}, nil, "want KIND/NAME"},
		{[]string{"pod,"}, nil, "want KIND/NAME"},
		{[]string{"pod/{app}"}, nil, "want KIND/NAME{CONTAINER}"},
	} {
		got, err := parseTargets(test.args)
		if test.err != "" {
			assert.ErrorContains(t, err, test.err, test.args)
			continue
		}
		require.NoError(t, err, test.args)
		assert.Equal(t, test.want, got)
	}
}

func TestParseSorter(t *testing.T) {
	for _, value := range []string{"last", "LAST", ".count", "{.count}", "metadata.name"} {
		_, err := parseSorter(value)
		assert.NoError(t, err, value)
	}
	for _, value := range []string{"", "age", "{", ".x["} {
		_, err := parseSorter(value)
		assert.ErrorContains(t, err, "--sort-by", value)
	}
}

// Namespaces often begin with the same word, and rows with the same state.
func TestNarrowList(t *testing.T) {
	l := &list{environment: &environment{times: "relative"}, namespace: true}
	var items []*query.Item
	for _, namespace := range []string{"openshift-monitoring", "openshift-oauth-apiserver"} {
		i := item("u", 0, "")
		i.Namespace, i.Event.Reason = namespace, "FailedScheduling"
		i.Key.Regarding.Namespace, i.Key.Regarding.Name = namespace, "apiserver-7b485d54c8-xf6hd"
		items = append(items, i)
	}
	rows, err := l.rows(all(items))
	require.NoError(t, err)
	layout := table.Fit(l.columns(), rows, terminal.Terminal{Width: 60})
	assert.Equal(t, `NAMESPACE     S  LAST  COUNT  REASON        OBJECT
opens…toring  S  16m       1  FailedSched…  Pod/api…c8-xf6hd
opens…server  S  16m       1  FailedSched…  Pod/api…c8-xf6hd
`, layout.Header()+layout.Line(rows[0])+layout.Line(rows[1]))
}

func TestEventName(t *testing.T) {
	for arg, want := range map[string]string{"a.17": "a.17", "event/a.17": "a.17", "events.events.k8s.io/a": "a", "ev/a": "a"} {
		got, err := eventName(arg)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, arg := range []string{"pod/a", "event/"} {
		_, err := eventName(arg)
		assert.ErrorContains(t, err, "want the name of an Event", arg)
	}
}

func item(uid types.UID, first time.Duration, related types.UID) *query.Item {
	ref := func(uid types.UID) series.Reference {
		return series.Reference{Kind: "Pod", Namespace: "shop", Name: "web-0", UID: uid}
	}
	s := series.Series{Key: series.Key{Regarding: ref(uid), Type: "Normal"}, Namespace: "shop", First: time.Unix(0, 0).Add(first), Count: 1}
	if related != "" {
		s.Key.Related = ref(related)
	}
	return query.FromEvent(s.Event(), time.Unix(1000, 0))
}

func TestCurrentObject(t *testing.T) {
	pod := query.Object{Kind: "Pod", Namespace: "shop", Name: "web-0"}
	for _, test := range []struct {
		name    string
		items   []*query.Item
		live    []types.UID
		uids    []types.UID
		earlier int
	}{
		{"none", nil, nil, []types.UID{""}, 0},
		{"without UIDs", []*query.Item{item("", 1, "")}, nil, []types.UID{""}, 0},
		{"one", []*query.Item{item("a", 1, ""), item("", 2, "")}, nil, []types.UID{"a"}, 0},
		{"the old one has the last event", []*query.Item{item("a", 1, ""), item("b", 5, ""), item("a", 9, "")}, nil, []types.UID{"b"}, 1},
		{"related", []*query.Item{item("a", 1, "b")}, nil, []types.UID{"b"}, 1},
		{"the kubelet writes the name", []*query.Item{item("web-0", 9, ""), item("a", 1, "")}, nil, []types.UID{"a"}, 0},
		{"it exists", []*query.Item{item("a", 1, ""), item("b", 5, "")}, []types.UID{"a"}, []types.UID{"a"}, 1},
		{"it exists without Events", []*query.Item{item("a", 1, ""), item("b", 5, "")}, []types.UID{"c"}, []types.UID{"b"}, 1},
		{"static Pod", []*query.Item{item("mirror", 1, ""), item("hash", 0, "")}, []types.UID{"mirror", "hash"}, []types.UID{"mirror", "hash"}, 0},
		{"static Pod, only the kubelet", []*query.Item{item("old", 9, ""), item("hash", 1, "")}, []types.UID{"mirror", "hash"}, []types.UID{"hash"}, 1},
	} {
		v := &view{timelineCommand: &timelineCommand{}, subject: pod, items: test.items}
		for _, uid := range test.live {
			o := pod
			o.UID = uid
			v.owned = append(v.owned, o)
		}
		var got []types.UID
		for _, o := range v.current() {
			got = append(got, o.UID)
		}
		assert.Equal(t, test.uids, got, test.name)
		assert.Equal(t, test.earlier > 0, len(v.remarks) > 0, test.name)
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	clock := clocktesting.NewFakePassiveClock(now)
	var b bytes.Buffer
	p := newProgress(&b, clock)
	step := func(d time.Duration, progress query.Progress) string {
		b.Reset()
		now = now.Add(d)
		clock.SetTime(now)
		p.update(progress)
		return b.String()
	}
	assert.Empty(t, step(time.Hour, query.Progress{Events: 100}), "no terminal")
	p.terminal = true
	assert.Equal(t, "\r\x1b[KReading events: 1,000 of about 100,000", step(1, query.Progress{Events: 1000, Remaining: 99_000}))
	assert.Empty(t, step(progressEvery-1, query.Progress{Events: 3500}))
	assert.Equal(t, "\r\x1b[KReading events: 4,000", step(1, query.Progress{Events: 4000, Remaining: -1}))
	assert.Equal(t, "\r\x1b[K", step(1, query.Progress{Done: true}))
	assert.Empty(t, step(1, query.Progress{Done: true}))
}

func TestGuessOwner(t *testing.T) {
	for pod, want := range map[string]string{
		"web-6d4cf9b7c-9tq8d":  "Deployment/web",
		"my-web-6d4cf-9tq8d":   "Deployment/my-web",
		"web-bcdfghjklm-xvwzt": "Deployment/web",
		"node-exporter2-9tq8d": "node-exporter2-*", // no hash
		"node-exporter-9tq8d":  "node-exporter-*",
		"checkout-0":           "checkout-*",
		"cron-28790400-9tq8d":  "CronJob/cron",
		"web":                  "",
		"my-web":               "",
		"my-hello-world":       "",
	} {
		assert.Equal(t, want, guessOwner("Pod", pod), pod)
	}
	for object, want := range map[string]string{
		"ReplicaSet/web-6d4cf9b7c": "Deployment/web", "ReplicaSet/web": "", "Job/cron-28790400": "CronJob/cron", "Job/migrate-x": "", "Service/web-6d4cf9b7c": "",
	} {
		kind, name, _ := strings.Cut(object, "/")
		assert.Equal(t, want, guessOwner(kind, name), object)
	}
}

func TestWarningsAboutDependents(t *testing.T) {
	now := time.Unix(100_000, 0)
	of := func(kind, name, reason string, ago time.Duration, count int32) *query.Item {
		return query.FromEvent(&eventsv1.Event{
			Type: "Warning", Reason: reason, Regarding: corev1.ObjectReference{Kind: kind, Namespace: "shop", Name: name}, DeprecatedCount: count,
			DeprecatedFirstTimestamp: metav1.NewTime(now.Add(-2 * time.Hour)), DeprecatedLastTimestamp: metav1.NewTime(now.Add(-ago)),
		}, now)
	}
	existing := map[string]sets.Set[string]{"Pod": sets.New("a", "b", "c"), "ReplicaSet": sets.New("web-1")}
	items := []*query.Item{
		of("Pod", "a", "BackOff", 0, 9), of("Pod", "a", "Failed", time.Hour, 9), of("Pod", "b", "Unhealthy", 0, 9), of("Pod", "c", "Killing", time.Hour, 9),
		of("Pod", "gone", "Evicted", time.Hour, 1), of("ReplicaSet", "web-1", "FailedCreate", 0, 9),
	}
	assert.Equal(t, "2 of 3 Pods with ongoing Warnings (BackOff, Unhealthy), 1 of 1 ReplicaSet with ongoing Warnings (FailedCreate), "+
		"1 of 3 Pods with past Warnings (Killing), 1 deleted Pod with past Warnings (Evicted)", warnings(items, existing))
	assert.Equal(t, "2 Pods with ongoing Warnings (BackOff, Unhealthy)", warnings([]*query.Item{items[0], items[2]}, nil))
	assert.Equal(t, "3 Pods, 1 ReplicaSet, no Warnings", warnings(nil, existing))
	assert.Empty(t, warnings(nil, nil))
}

func TestSortByMissingField(t *testing.T) {
	one := item("a", 1, "")
	for value, want := range map[string]string{".count": "", ".nope": `--sort-by ".nope": no series has this field: see`, "{.regarding.nope}": "no series has this field"} {
		sorter, err := parseSorter(value)
		require.NoError(t, err)
		for got, err := range sorter(all([]*query.Item{one, one}), 0) {
			if want == "" {
				require.NoError(t, err)
				assert.Equal(t, one.Name, got.Name)
			} else {
				require.ErrorContains(t, err, want)
			}
		}
	}
}

// Whoever pastes a command that names an object runs nothing else.
func TestCommandsAreQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"checkout-0":  "pod/checkout-0 -n shop",
		"web{app}":    "pod/web{app} -n shop",
		"x;curl y|sh": "'pod/x;curl y|sh' -n shop",
		"it's $(id)":  `'pod/it'\''s $(id)' -n shop`,
	} {
		o := query.Object{Kind: "Pod", Name: name, Namespace: "shop"}
		assert.Equal(t, want, arguments(o))
	}
	assert.Equal(t, "web -n shop", arguments(query.Object{Name: "web", Namespace: "shop"}), "an Event without a kind")
	e := &environment{flags: genericclioptions.NewConfigFlags(true)}
	nameless := query.Object{Kind: "Pod", Namespace: "shop"}
	next := e.commands([]hop{{nameless, "regarding"}, {query.Object{Kind: "Node", Name: "n1"}, "related"}}, nameless, query.Object{})
	assert.Equal(t, []timeline.Hop{{Command: "kubectl series timeline node/n1", Why: "related"}}, next, "an Event without a name")
}
