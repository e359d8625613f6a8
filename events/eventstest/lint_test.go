package eventstest

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
)

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
		"stack trace":                 {func(e *eventsv1.Event) { e.Note = "panic: oh\n" + string(debug.Stack()) }, "note"},
		"words of a stack trace":      {func(e *eventsv1.Event) { e.Note = "1 goroutine 7 [sic]" }, ""},
		"private key":                 {func(e *eventsv1.Event) { e.Note = "-----BEGIN PRIVATE KEY-----" }, "note"},
		"RSA private key":             {func(e *eventsv1.Event) { e.Note = "-----BEGIN RSA PRIVATE KEY-----" }, "note"},
		"certificate":                 {func(e *eventsv1.Event) { e.Note = "-----BEGIN CERTIFICATE-----" }, ""},
		"key in an annotation":        {annotation("-----BEGIN EC PRIVATE KEY-----"), "metadata.annotations[k]"},
		"other annotation":            {annotation("v"), ""},
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
	require.Len(t, rows, 8)
	for _, row := range rows {
		event := valid()
		event.Type, event.Action, event.Reason, event.Note = row[1], row[2], row[3], row[4]
		assert.Empty(t, Lint(event), row[0])
		assert.Empty(t, Validate(event), row[0])
	}

	calls := regexp.MustCompile(`// (bad|good)[^\n]*\nrecorder\.Eventf\(\w+, \w+, "(\w+)", ("[^,]+), ("[^,]+), "`).FindAllStringSubmatch(string(guide), -1)
	require.Len(t, calls, 6)
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

func TestMisformatted(t *testing.T) {
	assert.True(t, misformatted("%!d(string=x)", "%d", []any{"x"}))
	assert.False(t, misformatted("95%!", "%d%%!", []any{95}))
	assert.False(t, misformatted("%!d(string=x)", "%v", []any{"%!d(string=x)"}))
	assert.False(t, misformatted("100%!", "100%!", nil))
}
