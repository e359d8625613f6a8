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
	for name, row := range map[string]struct {
		change func(*eventsv1.Event)
		want   string // the field; empty: it is fine
	}{
		"fine":                 {change: func(*eventsv1.Event) {}},
		"digits":               {change: func(e *eventsv1.Event) { e.Reason = "HTTP503" }},
		"data in the reason":   {change: func(e *eventsv1.Event) { e.Reason = "Created-job-17" }, want: "reason"},
		"reason in lower case": {change: func(e *eventsv1.Event) { e.Reason = "bound" }, want: "reason"},
		"reason of words":      {change: func(e *eventsv1.Event) { e.Reason = "Was bound" }, want: "reason"},
		"no reason":            {change: func(e *eventsv1.Event) { e.Reason = "" }}, // Validate says so
		"data in the action":   {change: func(e *eventsv1.Event) { e.Action = "Create_job" }, want: "action"},
		"action is the reason": {change: func(e *eventsv1.Event) { e.Action = e.Reason }, want: "action"},
		"neither":              {change: func(e *eventsv1.Event) { e.Action, e.Reason = "", "" }},
		"related to itself":    {change: func(e *eventsv1.Event) { e.Related = &e.Regarding }, want: "related"},
		"related to a part": {change: func(e *eventsv1.Event) {
			e.Related = e.Regarding.DeepCopy()
			e.Related.FieldPath = "spec.containers{web}"
		}},
		"nothing related":        {change: func(e *eventsv1.Event) { e.Related = nil }},
		"stack trace":            {change: func(e *eventsv1.Event) { e.Note = "panic: oh\n" + string(debug.Stack()) }, want: "note"},
		"word of a stack trace":  {change: func(e *eventsv1.Event) { e.Note = "1 goroutine 7 [sic]" }},
		"private key in a note":  {change: func(e *eventsv1.Event) { e.Note = "-----BEGIN RSA PRIVATE KEY-----" }, want: "note"},
		"private key without":    {change: func(e *eventsv1.Event) { e.Note = "-----BEGIN PRIVATE KEY-----" }, want: "note"},
		"certificate":            {change: func(e *eventsv1.Event) { e.Note = "-----BEGIN CERTIFICATE-----" }},
		"key in an annotation":   {change: func(e *eventsv1.Event) { e.Annotations = map[string]string{"k": "-----BEGIN EC PRIVATE KEY-----"} }, want: "metadata.annotations[k]"},
		"annotation that is not": {change: func(e *eventsv1.Event) { e.Annotations = map[string]string{"k": "v"} }},
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
			assert.NotContains(t, problems[0].String(), "PRIVATE KEY", "a secret is not shown")
		})
	}
}

// Every example of the style guide that is meant to be followed is fine.
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
