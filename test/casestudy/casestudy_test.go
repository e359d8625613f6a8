package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

func TestParse(t *testing.T) {
	var m moved
	require.NoError(t, m.parse(`rule   moved  left  to decide
types  190    10    0
Eventf 57     1     2

111 of 112 calls (99.1 percent), 62 files

Left as it is:
  pkg/a.go:76: types: EventBroadcaster: no clientset (a.go:149)

To decide:
  pkg/b.go:447: action: name the action of the reason UnexpectedJob: the constant actionUnexpectedJob
  pkg/b.go:456: action: name the action of the reason MissingJob: the constant actionMissingJob
`))
	assert.Equal(t, 111, m.CallsMoved)
	assert.Equal(t, 1, m.CallsLeft)
	assert.Equal(t, []rule{{"types", 190, 10, 0}, {"Eventf", 57, 1, 2}}, m.Rules)
	assert.Equal(t, []place{{"pkg/a.go:76", "types", "EventBroadcaster: no clientset (a.go:149)"}}, m.Left)
	assert.Equal(t, []group{{"action", "name the action of the reason …: the constant …", 2, "pkg/b.go:447"}}, groups(m.Decide))

	assert.ErrorContains(t, m.parse("nothing"), "no table")
}

func TestCompare(t *testing.T) {
	const programLog = `I1122 10:24:27.060577    6211 event.go:389] "Event occurred" logger="cronjob-controller" object="shop/backup" fieldPath="" kind="CronJob" apiVersion="batch/v1" type="Normal" reason="SuccessfulCreate" message="Created job a"
I1122 10:24:27.060577    6211 logging.go:44] "Event occurred" object="shop/backup" kind="CronJob" apiVersion="batch/v1" type="Normal" reason="SuccessfulCreate" action="Create" note="Created job b"
I1122 10:24:27.060577    6211 event.go:377] Event(v1.ObjectReference{Kind:"MPIJob", Namespace:"app", Name:"good", UID:"8f69", APIVersion:"kubeflow.org/v2beta1", ResourceVersion:"230", FieldPath:""}): type: 'Normal' reason: 'MPIJobCreated' MPIJob app/good is created.
time=2026-11-22T04:29:50.006Z level=INFO msg="Event(v1.ObjectReference{Kind:\"SealedSecret\", Namespace:\"app\", Name:\"bad\", UID:\"90e4\", APIVersion:\"bitnami.com/v1alpha1\", ResourceVersion:\"218\", FieldPath:\"\"}): type: 'Warning' reason: 'ErrUnsealFailed' Failed to unseal: no key could decrypt secret (foo)"
I1122 10:24:27.060577    6211 a.go:1] "Something else"
`
	const audit = `{"verb":"create","user":{"username":"system:serviceaccount:kube-system:cronjob-controller"},"objectRef":{"resource":"jobs","name":"a"},"responseStatus":{"code":201}}
{"verb":"create","user":{"username":"system:serviceaccount:kube-system:cronjob-controller"},"objectRef":{"resource":"jobs","name":"b"},"responseStatus":{"code":201}}
{"verb":"create","user":{"username":"system:serviceaccount:kubeflow:mpi-operator"},"objectRef":{"resource":"jobs","name":"c"},"responseStatus":{"code":201}}
{"verb":"create","user":{"username":"system:serviceaccount:kube-system:cronjob-controller"},"objectRef":{"resource":"events"},"responseStatus":{"code":201}}
{"verb":"list","user":{"username":"kube-controller-manager"},"objectRef":{"resource":"events"},"responseStatus":{"code":403}}
{"verb":"list","user":{"username":"admin"},"objectRef":{"resource":"events"},"responseStatus":{"code":200}}
`
	cronJob := corev1.ObjectReference{Kind: "CronJob", Name: "backup"}
	s := compare([]eventsv1.Event{
		{Regarding: cronJob, Reason: "SuccessfulCreate", Note: "Created job a", Related: &corev1.ObjectReference{Kind: "Job", Name: "a"}},
		{Regarding: cronJob, Reason: "SuccessfulCreate", Note: "(combined from similar events): Created job b", DeprecatedCount: 3},
		{Regarding: cronJob, Reason: "SuccessfulCreate", Series: &eventsv1.EventSeries{Count: 4}},
		{Reason: "ClusterIPNotAllocated", ReportingController: "ipallocator-repair-controller"},
	}, programLog, []byte(audit))
	assert.Equal(t, side{
		Emitted: 4, Events: 3, Recorded: 8, Related: 1, Combined: 1, Denied: 1, Jobs: 2,
		Requests:  map[string]int{"create": 1, "list": 1},
		JobsNamed: map[string]int{"related": 1, "related SuccessfulCreate": 1, "message": 2, "message SuccessfulCreate": 2},
		Reasons: []reason{
			{"CronJob", "SuccessfulCreate", 2, 8, 3, "Job"}, {"MPIJob", "MPIJobCreated", 1, 0, 0, ""}, {"SealedSecret", "ErrUnsealFailed", 1, 0, 0, ""},
		},
	}, s)
	bytes, err := requestBytes([]byte(`# TYPE apiserver_request_body_size_bytes histogram
apiserver_request_body_size_bytes_sum{group="",resource="events",verb="create"} 500
apiserver_request_body_size_bytes_sum{group="events.k8s.io",resource="events",verb="patch"} 200
apiserver_request_body_size_bytes_sum{group="",resource="pods",verb="create"} 900
`))
	require.NoError(t, err)
	assert.Equal(t, 700, bytes)
}

func TestCompareFlux(t *testing.T) {
	event := func(regarding string, count int32, state series.State) eventsv1.Event {
		e := eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Regarding: corev1.ObjectReference{Kind: "Kustomization", Name: regarding},
			Reason: "ArtifactFailed", Note: "stat /var/tmp/kustomization-1: no such file", EventTime: metav1.NowMicro(),
		}
		if count > 1 {
			e.Labels[series.LabelState] = state.String()
			e.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NowMicro()}
		}
		return e
	}
	const audit = `{"verb":"create","user":{"username":"kustomize-controller"},"objectRef":{"resource":"events","name":"missing-10.17"}}
{"verb":"patch","user":{"username":"kustomize-controller"},"objectRef":{"resource":"events","name":"missing-10.17"}}
{"verb":"list","user":{"username":"kustomize-controller"},"objectRef":{"resource":"events"}}
{"verb":"list","user":{"username":"admin"},"objectRef":{"resource":"events"}}
`
	flux := trial{user: fluxProgram.Users[0], groups: fluxGroups}
	var run recorderRun
	run.compare(flux,
		[]recorders.Count{{Name: "missing-10", Reason: "ArtifactFailed", Count: 9}, {Name: "missing-20", Reason: "ArtifactFailed", Count: 2}},
		[]eventsv1.Event{event("missing-10", 7, series.Ongoing)},
		[]eventsv1.Event{event("missing-10", 9, series.Ongoing), event("missing-20", 1, series.Singleton), event("kubernetes", 1, series.Singleton)},
		[]byte(audit), time.Now(), "/var/tmp")
	require.Len(t, run.Groups, 3)
	assert.Equal(t, &objectGroup{
		Name: missing, Objects: 2, Emitted: 11, Recorded: 10, RecordedBefore: 7, Events: 2, Ongoing: 1, FewestEvents: 1, MostEvents: 1, Exact: 1,
		Requests: map[string]int{"create": 1, "patch": 1},
		Reasons:  map[string]*tally{"ArtifactFailed": {Emitted: 11, Recorded: 10, Events: 2}},
		Example: example{
			Name: "missing-10", Emitted: 9, Events: []seenEvent{{"ArtifactFailed", "Ongoing", 7, "stat /tmp/kustomization-1: no such file"}},
		},
	}, run.Groups[1])
	assert.Equal(t, 1, run.Lists)
	assert.Equal(t, 3, run.Requests())
	assert.Equal(t, 10, run.Recorded())
	assert.Equal(t, 1, run.Lost())
}

// A failing Kustomization has one Ongoing Event, and each occurrence is counted, for at most a
// tenth of the requests of tools/events. The webhook gets all events whatever the recorder is.
func TestFluxResults(t *testing.T) {
	results, err := readResults[fluxResults](filepath.Join("..", "..", "docs", "case-study", "flux.json"))
	require.NoError(t, err)
	runs := map[string]*recorderRun{}
	for _, run := range results.Runs {
		runs[run.Recorder] = run
		assert.Equal(t, run.Emitted(), run.Posts, run.Recorder)
	}
	require.Contains(t, runs, recorders.ToolsEvents)
	require.Contains(t, runs, recorders.Eventseries)
	for i, group := range runs[recorders.Eventseries].Groups {
		assert.Equal(t, group.Objects, group.Exact, group.Name)
		assert.Equal(t, group.Emitted, group.Recorded, group.Name)
		if group.Name == healthy {
			continue
		}
		assert.Equal(t, group.Objects, group.Ongoing, group.Name)
		assert.Len(t, group.Example.Events, 1, group.Name)
		assert.LessOrEqual(t, 10*group.PerOne(), runs[recorders.ToolsEvents].Groups[i].PerOne(), group.Name)
	}
}

// With the import changed, the Events contain each occurrence, for fewer requests.
func TestKubeletResults(t *testing.T) {
	results, err := readResults[kubeletResults](filepath.Join("..", "..", "docs", "case-study", "kubelet.json"))
	require.NoError(t, err)
	runs := map[string]*recorderRun{}
	for _, run := range results.Runs {
		runs[run.Recorder] = run
		assert.Zero(t, run.Others, run.Recorder)
		for _, group := range run.Groups {
			assert.Equal(t, max(results.Pods[group.Name], 1), group.Objects, "%s: %s", run.Recorder, group.Name)
		}
	}
	require.Contains(t, runs, recorders.ToolsRecord)
	require.Contains(t, runs, recorders.CompatRecord)
	assert.Equal(t, recorders.ToolsRecord, results.Runs[0].Recorder, "the page compares the others with it")
	assert.Positive(t, runs[recorders.ToolsRecord].Lost())
	for name, run := range runs {
		if name == recorders.ToolsRecord {
			continue
		}
		for _, group := range run.Groups {
			assert.Equal(t, group.Objects, group.Exact, "%s: %s", name, group.Name)
			assert.Zero(t, group.Lost(), "%s: %s", name, group.Name)
		}
		assert.Less(t, run.Requests(), runs[recorders.ToolsRecord].Requests(), name)
	}
}

// After ten minutes, the recorder has one Event for each Pod that does not fit, and every
// occurrence in it.
func TestSchedulerResults(t *testing.T) {
	results, err := readResults[schedulerResults](filepath.Join("..", "..", "docs", "case-study", "scheduler.json"))
	require.NoError(t, err)
	require.Len(t, results.Runs, len(schedulerCases)*len(schedulerRecorders), "of cases that do not exist, or none of some")
	for i, study := range schedulerCases {
		theirs, ours := results.Runs[2*i], results.Runs[2*i+1]
		assert.Equal(t, study.Name, ours.Case)
		assert.Equal(t, recorders.ToolsEvents, theirs.Recorder, study.Name)
		assert.Equal(t, study.Pods, ours.Stopped.Events, study.Name)
		if study.Duration == 10*time.Minute {
			assert.Zero(t, ours.Lost(), study.Name)
			assert.Less(t, ours.Sent(), theirs.Sent(), study.Name)
		}
	}
}

func TestSchedulerFigures(t *testing.T) {
	one := schedulerRun{
		Case: schedulerCases[1].Name, Recorder: recorders.Eventseries, Occurrences: 9, Requests: map[string]int{"create": 2, "patch": 3},
		Stopped: eventTally{Count: 7}, Batches: []batch{{Bound: 10, Seconds: 1}, {Bound: 10, Seconds: 2}, {Bound: 10, Seconds: 5}},
	}
	assert.Equal(t, 5, one.Sent())
	assert.Equal(t, 2, one.Lost())
	assert.InDelta(t, 5, one.Throughput(), 0)
	one.Batches = one.Batches[:2]
	assert.InDelta(t, 7.5, one.Throughput(), 0)

	var r schedulerResults
	for _, run := range []schedulerRun{
		one, {Case: one.Case, Recorder: recorders.ToolsEvents},
		{Case: schedulerCases[0].Name, Recorder: recorders.Eventseries}, {Case: one.Case, Recorder: recorders.Eventseries, Occurrences: 1},
	} {
		r.replace(run)
	}
	require.Len(t, r.Runs, 3)
	assert.Equal(t, schedulerCases[0].Name, r.Runs[0].Case)
	assert.Equal(t, recorders.ToolsEvents, r.Runs[1].Recorder)
	assert.Equal(t, 1, r.Runs[2].Occurrences)
}

func TestReplace(t *testing.T) {
	m := &mover{program: kubeletProgram, work: t.TempDir()}
	require.NoError(t, os.Mkdir(m.dir(), 0o755))
	file := filepath.Join(m.dir(), "a.go")
	require.NoError(t, os.WriteFile(file, []byte("period = time.Second\n"), 0o644))
	require.NoError(t, m.replace("a.go", "period = time.Second", "period = (time.Second) / 10"))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "period = (time.Second) / 10\n", string(content))
	assert.ErrorContains(t, m.replace("a.go", "delay", ""), `contains "delay" 0 times`)
}

func TestPods(t *testing.T) {
	for group := range podCounts {
		var object corev1.Pod
		require.NoError(t, yaml.NewYAMLOrJSONDecoder(strings.NewReader(pod(group, 7)), 4096).Decode(&object), group)
		assert.Equal(t, group+"7", object.Name)
		assert.Equal(t, recorders.Node, object.Spec.NodeName)
		assert.Equal(t, group == unready, object.Spec.Containers[0].ReadinessProbe != nil, group)
		assert.Equal(t, group == unmounts, object.Spec.Volumes != nil, group)
		assert.Equal(t, group, trial{groups: podGroups}.group(object.Name))
	}
}

func TestKustomization(t *testing.T) {
	names := map[string]int{}
	for i := range 1000 {
		text := kustomization(i, 6)
		for _, group := range fluxGroups {
			names[group] += strings.Count(text, "name: "+group)
		}
		assert.Contains(t, text, "interval: 10m0s, retryInterval: 10s")
	}
	assert.Equal(t, map[string]int{healthy: 900, missing: 90, rejected: 10}, names)
}

// The page is what the results say, and keeps the sections of others.
func TestPageIsUpToDate(t *testing.T) {
	results, err := readResults[results](filepath.Join("..", "..", "docs", "case-study", "migrate.json"))
	require.NoError(t, err)
	section, err := render(results)
	require.NoError(t, err)
	assert.NotContains(t, section, "not explained")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "case-study.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), strings.TrimSpace(section), "run make casestudy-migrate CASESTUDY_FLAGS=-steps=page")

	flux, err := readResults[fluxResults](filepath.Join("..", "..", "docs", "case-study", "flux.json"))
	require.NoError(t, err)
	hollow, err := readResults[kubeletResults](filepath.Join("..", "..", "docs", "case-study", "kubelet.json"))
	require.NoError(t, err)
	scheduled, err := readResults[schedulerResults](filepath.Join("..", "..", "docs", "case-study", "scheduler.json"))
	require.NoError(t, err)
	for template, results := range map[*template.Template]any{fluxTemplate: flux, kubeletTemplate: hollow, schedulerTemplate: scheduled} {
		section, err = renderRuns(template, results)
		require.NoError(t, err)
		assert.Contains(t, string(page), strings.TrimSpace(section), "run make casestudy-migrate CASESTUDY_FLAGS=-steps=page")
	}

	copied := filepath.Join(t.TempDir(), "page.md")
	for _, rest := range []string{"", "\n## Another\n\nText.\n"} {
		before := "# Case studies\n\n## First\n\n"
		require.NoError(t, os.WriteFile(copied, []byte(before+heading+"\n\nold\n"+rest), 0o644))
		require.NoError(t, replaceSection(copied, heading, heading+"\n\nnew\n"))
		got, err := os.ReadFile(copied)
		require.NoError(t, err)
		assert.Equal(t, before+heading+"\n\nnew\n"+rest, string(got))
	}
}
