package fakeapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Package eventstest tests ValidateCreate through its Validate.
func TestValidateUpdate(t *testing.T) {
	later := metav1.NewMicroTime(noon.Add(time.Minute))
	for name, row := range map[string]struct {
		change func(*eventsv1.Event)
		want   string // the field; empty: none
	}{
		"nothing":         {change: func(*eventsv1.Event) {}},
		"series":          {change: func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: later} }},
		"annotations":     {change: func(e *eventsv1.Event) { e.Annotations = map[string]string{"a": "1"} }},
		"nanoseconds":     {change: func(e *eventsv1.Event) { e.EventTime = metav1.NewMicroTime(noon.Add(time.Nanosecond)) }},
		"series of one":   {change: func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 1, LastObservedTime: later} }, want: "series.count"},
		"regarding":       {change: func(e *eventsv1.Event) { e.Regarding.Name = "other" }, want: "regarding"},
		"related":         {change: func(e *eventsv1.Event) { e.Related = nil }, want: "related"},
		"type":            {change: func(e *eventsv1.Event) { e.Type = "Warning" }, want: "type"},
		"reason":          {change: func(e *eventsv1.Event) { e.Reason = "Other" }, want: "reason"},
		"action":          {change: func(e *eventsv1.Event) { e.Action = "Other" }, want: "action"},
		"note":            {change: func(e *eventsv1.Event) { e.Note = "other" }, want: "note"},
		"eventTime":       {change: func(e *eventsv1.Event) { e.EventTime = later }, want: "eventTime"},
		"controller":      {change: func(e *eventsv1.Event) { e.ReportingController = "other" }, want: "reportingController"},
		"instance":        {change: func(e *eventsv1.Event) { e.ReportingInstance = "other" }, want: "reportingInstance"},
		"count":           {change: func(e *eventsv1.Event) { e.DeprecatedCount = 1 }, want: "deprecatedCount"},
		"source":          {change: func(e *eventsv1.Event) { e.DeprecatedSource.Host = "h" }, want: "deprecatedSource"},
		"firstTimestamp":  {change: func(e *eventsv1.Event) { e.DeprecatedFirstTimestamp = metav1.Now() }, want: "deprecatedFirstTimestamp"},
		"lastTimestamp":   {change: func(e *eventsv1.Event) { e.DeprecatedLastTimestamp = metav1.Now() }, want: "deprecatedLastTimestamp"},
		"annotation keys": {change: func(e *eventsv1.Event) { e.Annotations = map[string]string{"not a key": "1"} }, want: "metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			old := valid()
			old.ResourceVersion = "1"
			event := old.DeepCopy()
			row.change(event)
			var got []string
			for _, err := range ValidateUpdate(event, old) {
				got = append(got, err.Field)
			}
			if row.want == "" {
				assert.Empty(t, got)
			} else {
				assert.Equal(t, []string{row.want}, got)
			}
		})
	}
}
