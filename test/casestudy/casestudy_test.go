package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
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

// The page is what the results say, and keeps the sections of others.
func TestPageIsUpToDate(t *testing.T) {
	results, err := readResults(filepath.Join("..", "..", "docs", "case-study", "migrate.json"))
	require.NoError(t, err)
	section, err := render(results)
	require.NoError(t, err)
	assert.NotContains(t, section, "not explained")
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "case-study.md"))
	require.NoError(t, err)
	assert.Contains(t, string(page), strings.TrimSpace(section), "run make casestudy-migrate CASESTUDY_FLAGS=-steps=page")

	copied := filepath.Join(t.TempDir(), "page.md")
	for _, rest := range []string{"", "\n## Another\n\nText.\n"} {
		before := "# Case studies\n\n## First\n\n"
		require.NoError(t, os.WriteFile(copied, []byte(before+heading+"\n\nold\n"+rest), 0o644))
		require.NoError(t, replaceSection(copied, heading+"\n\nnew\n"))
		got, err := os.ReadFile(copied)
		require.NoError(t, err)
		assert.Equal(t, before+heading+"\n\nnew\n"+rest, string(got))
	}
}
