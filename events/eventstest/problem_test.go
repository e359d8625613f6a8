package eventstest

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// valid returns an Event without problems.
func valid() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: "shop", Name: "cart-7.0123456789abcdef"},
		EventTime:           metav1.NewMicroTime(noon),
		ReportingController: "example.com/scheduler",
		ReportingInstance:   "scheduler-0",
		Action:              "Schedule",
		Reason:              "Bound",
		Regarding:           podRef,
		Related:             nodeRef.DeepCopy(),
		Note:                "bound to worker-2",
		Type:                corev1.EventTypeNormal,
	}
}

// Tests in test/integration compare this with the real server.
func TestValidate(t *testing.T) {
	long := strings.Repeat("x", 129)
	for name, row := range map[string]struct {
		change func(*eventsv1.Event)
		want   []string // the problems; * stands for any end
	}{
		"valid":              {change: func(*eventsv1.Event) {}},
		"note of 1024 bytes": {change: func(e *eventsv1.Event) { e.Note = strings.Repeat("é", 512) }},
		"note of 1025 bytes": {
			func(e *eventsv1.Event) { e.Note = strings.Repeat("n", 1025) },
			[]string{`note: "` + strings.Repeat("n", 77) + `…": must have at most 1024 bytes, has 1025`},
		},
		"no reason":      {func(e *eventsv1.Event) { e.Reason = "" }, []string{`reason: "": is required`}},
		"long action":    {func(e *eventsv1.Event) { e.Action = long }, []string{`action: "` + long[:77] + `…": must have at most 128 bytes, has 129`}},
		"no instance":    {func(e *eventsv1.Event) { e.ReportingInstance = "" }, []string{`reportingInstance: "": is required`}},
		"type":           {func(e *eventsv1.Event) { e.Type = "Error" }, []string{`type: "Error": must be Normal or Warning`}},
		"cluster-scoped": {change: func(e *eventsv1.Event) { e.Regarding, e.Namespace = nodeRef, "kube-system" }},
		"cluster-scoped elsewhere": {
			func(e *eventsv1.Event) { e.Regarding = nodeRef },
			[]string{`regarding.namespace: "": the Event of a cluster-scoped object must be in "kube-system" or "default", is in "shop"`},
		},
		"series": {change: func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: e.EventTime} }},
		"series of one": {
			func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 1} },
			[]string{`series.count: "1": must be at least 2`, `series.lastObservedTime: "": is required`},
		},
		"deprecated fields": {
			func(e *eventsv1.Event) {
				e.DeprecatedCount, e.DeprecatedSource = 1, corev1.EventSource{Component: "scheduler"}
				e.DeprecatedFirstTimestamp, e.DeprecatedLastTimestamp = metav1.NewTime(noon), metav1.NewTime(noon)
			},
			[]string{
				`deprecatedFirstTimestamp: "` + noon.String() + `": must not be set`, `deprecatedLastTimestamp: "` + noon.String() + `": must not be set`,
				`deprecatedCount: "1": must not be set`, `deprecatedSource: "scheduler": must not be set`,
			},
		},
		"no time": {func(e *eventsv1.Event) { e.EventTime, e.ReportingInstance = metav1.MicroTime{}, "" }, []string{`eventTime: "": is required`}},
		"no time and another namespace": {
			func(e *eventsv1.Event) { e.EventTime, e.Regarding.Namespace = metav1.MicroTime{}, "other" },
			[]string{`regarding.namespace: "other": must be that of the Event, "shop"`, `eventTime: "": is required`},
		},
		"no time and cluster-scoped": {
			func(e *eventsv1.Event) { e.EventTime, e.Regarding.Namespace = metav1.MicroTime{}, "" },
			[]string{`regarding.namespace: "": the Event of a cluster-scoped object must be in "default", is in "shop"`, `eventTime: "": is required`},
		},
		// The details of the others come from apimachinery.
		"name":          {func(e *eventsv1.Event) { e.Name = "system:discovery.1" }, []string{`metadata.name: "system:discovery.1": *`}},
		"annotation":    {func(e *eventsv1.Event) { e.Annotations = map[string]string{"not a key": ""} }, []string{`metadata.annotations: "not a key": *`}},
		"label":         {func(e *eventsv1.Event) { e.Labels = map[string]string{"a": "not a value"} }, []string{`metadata.labels: "not a value": *`}},
		"generate name": {func(e *eventsv1.Event) { e.GenerateName = "Upper" }, []string{`metadata.generateName: "Upper": *`}},
		"controller":    {func(e *eventsv1.Event) { e.ReportingController = "host-0_" + long }, []string{`reportingController: "host-0_*`}},
	} {
		t.Run(name, func(t *testing.T) {
			event := valid()
			row.change(event)
			var got []string
			for _, problem := range Validate(event) {
				assert.Equal(t, ClassRules, problem.Class)
				assert.False(t, problem.Lost)
				got = append(got, problem.String())
			}
			require.Len(t, got, len(row.want), "%q", got)
			for i, want := range row.want {
				if start, ok := strings.CutSuffix(want, "*"); ok {
					want = start + strings.TrimPrefix(got[i], start)
				}
				assert.Equal(t, want, got[i])
			}
		})
	}
}

func FuzzValidate(f *testing.F) {
	f.Add("shop", "cart-7", "example.com/scheduler", "Bound", "note", int32(2), int64(1))
	f.Add("", "", "", "", "\xff", int32(-1), int64(0))
	f.Fuzz(func(t *testing.T, namespace, name, controller, word, note string, count int32, nanos int64) {
		event := valid()
		event.Namespace, event.Name, event.ReportingController, event.Reason, event.Action, event.Note = namespace, name, controller, word, word, note
		event.Annotations = map[string]string{word: note}
		event.Series = &eventsv1.EventSeries{Count: count}
		if nanos != 0 {
			event.Series.LastObservedTime = metav1.NewMicroTime(time.Unix(0, nanos))
		}
		problems := Validate(event)
		if count < 2 {
			assert.NotEmpty(t, problems)
		}
		for _, problem := range append(problems, Lint(event)...) {
			assert.NotEmpty(t, problem.Field)
			assert.NotEmpty(t, problem.Detail)
		}
		if len(problems) == 0 {
			assert.Empty(t, Validate(event.DeepCopy()))
		}
	})
}

func TestLint(t *testing.T) {
	annotation := func(value string) func(*eventsv1.Event) {
		return func(e *eventsv1.Event) { e.Annotations = map[string]string{"k": value} }
	}
	for name, row := range map[string]struct {
		change func(*eventsv1.Event)
		want   string // the field; empty: no problem
	}{
		"good":                        {func(*eventsv1.Event) {}, ""},
		"digits":                      {func(e *eventsv1.Event) { e.Reason = "HTTP503" }, ""},
		"data in the reason":          {func(e *eventsv1.Event) { e.Reason = "Created-job-17" }, "reason"},
		"lower-case reason":           {func(e *eventsv1.Event) { e.Reason = "bound" }, "reason"},
		"reason of words":             {func(e *eventsv1.Event) { e.Reason = "Was bound" }, "reason"},
		"no reason":                   {func(e *eventsv1.Event) { e.Reason = "" }, ""}, // a problem for Validate
		"data in the action":          {func(e *eventsv1.Event) { e.Action = "Create_job" }, "action"},
		"action is the reason":        {func(e *eventsv1.Event) { e.Action = e.Reason }, "action"},
		"neither":                     {func(e *eventsv1.Event) { e.Action, e.Reason = "", "" }, ""},
		"related to itself":           {func(e *eventsv1.Event) { e.Related = &e.Regarding }, "related"},
		"related to a part of itself": {func(e *eventsv1.Event) { *e.Related, e.Related.FieldPath = e.Regarding, "spec.containers{web}" }, ""},
		"not related":                 {func(e *eventsv1.Event) { e.Related = nil }, ""},
		"a Node related to a Pod": {func(e *eventsv1.Event) {
			*e.Related, e.Regarding = e.Regarding, corev1.ObjectReference{Kind: "Node", Name: "node-7"}
		}, "regarding"},
		"related cluster-scoped objects": {func(e *eventsv1.Event) { e.Regarding.Namespace, e.Related.Namespace = "", "" }, ""},
		"generateName only":              {func(e *eventsv1.Event) { e.Regarding.Name, e.Regarding.UID = "", "" }, "regarding"},
		"UID only":                       {func(e *eventsv1.Event) { e.Regarding.Name, e.Regarding.UID = "", "uid" }, ""},
		"related, generateName only":     {func(e *eventsv1.Event) { e.Related.Name, e.Related.UID = "", "" }, "related"},
		"stack trace":                    {func(e *eventsv1.Event) { e.Note = "panic: oh\n" + string(debug.Stack()) }, "note"},
		"words of a stack trace":         {func(e *eventsv1.Event) { e.Note = "1 goroutine 7 [sic]" }, ""},
		"private key":                    {func(e *eventsv1.Event) { e.Note = "-----BEGIN PRIVATE KEY-----" }, "note"},
		"RSA private key":                {func(e *eventsv1.Event) { e.Note = "-----BEGIN RSA PRIVATE KEY-----" }, "note"},
		"certificate":                    {func(e *eventsv1.Event) { e.Note = "-----BEGIN CERTIFICATE-----" }, ""},
		"key in an annotation":           {annotation("-----BEGIN EC PRIVATE KEY-----"), "metadata.annotations[k]"},
		"other annotation":               {annotation("v"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			event := valid()
			row.change(event)
			problems := Lint(event)
			if row.want == "" {
				assert.Empty(t, problems)
				return
			}
			require.Len(t, problems, 1)
			assert.Equal(t, row.want, problems[0].Field)
			assert.Equal(t, ClassStyle, problems[0].Class)
			assert.NotContains(t, problems[0].String(), "PRIVATE KEY", "problems do not reveal secrets")
		})
	}
}

func TestLintAgreesWithTheStyleGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/style-guide.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\|[^|]+\\|[^|]+\\|[^|]+\\| (Normal|Warning) \\| `(\\w+)` \\| `(\\w+)` \\| `([^`]+)` \\|$").FindAllStringSubmatch(string(guide), -1)
	require.GreaterOrEqual(t, len(rows), 3)
	for _, row := range rows {
		event := valid()
		event.Type, event.Action, event.Reason, event.Note = row[1], row[2], row[3], row[4]
		assert.Empty(t, Lint(event), row[0])
		assert.Empty(t, Validate(event), row[0])
	}

	calls := regexp.MustCompile(`// (bad|good)[^\n]*\nrecorder\.Eventf\(\w+, \w+, "(\w+)", ("[^,]+), ("[^,]+), "`).FindAllStringSubmatch(string(guide), -1)
	require.NotEmpty(t, calls)
	bad := 0
	for _, call := range calls {
		event := valid()
		event.Type, event.Reason, event.Action = call[2], strings.Trim(call[3], `"`), strings.Trim(call[4], `"`)
		if call[1] == "good" {
			assert.Empty(t, Lint(event), call[0])
		} else {
			bad += len(Lint(event))
		}
	}
	assert.Positive(t, bad)
}
