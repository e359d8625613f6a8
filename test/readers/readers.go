package readers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sight is an Event that a reader receives through core/v1.
type sight struct {
	*corev1.Event
	now     time.Time
	start   time.Time // of the reader
	created bool      // the reader has not received it before
	written time.Time // of the newest managedFields
}

// reader is the rules of a program: which time and count it shows of an Event. ok is false if it
// ignores the Event.
type reader struct {
	name, source string
	show         func(s sight) (at time.Time, count int32, ok bool)
}

// readers are the programs of the table in docs/consumers.md.
var readers = []reader{
	{"kubectl get events", "kubernetes v1.36.3, printEvent", printed},
	{"kubectl events", "kubectl v0.36.3", seriesFirst},
	{"kubectl describe, its order", "kubectl v0.36.3, SortableEvents", func(s sight) (time.Time, int32, bool) {
		_, count, _ := printed(s)
		return s.LastTimestamp.Time, count, true
	}},
	{"k9s", "derailed/k9s 6d2b42c, the table of the server", printed},
	{"Kubernetes Dashboard", "kubernetes/dashboard 2f3f7b0", func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.FirstTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Headlamp", "kubernetes-sigs/headlamp 24cf462, event.ts", headlamp},
	{"OpenShift console", "openshift/console da1f132, events.tsx", func(s sight) (time.Time, int32, bool) {
		at, count, _ := headlamp(s)
		return firstOf(s.LastTimestamp.Time, at), count, true
	}},
	{"Argo CD", "argoproj/argo-cd 37ee009, events-list.tsx", func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Botkube", "kubeshop/botkube ee94e19", func(s sight) (time.Time, int32, bool) {
		if s.LastTimestamp.IsZero() && s.Series != nil {
			return s.Series.LastObservedTime.Time, s.Series.Count, true
		}
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Argo Events, `afterStart`", "argoproj/argo-events 6478ece, resource source", func(s sight) (time.Time, int32, bool) {
		changed := firstOf(s.written, s.CreationTimestamp.Time)
		return changed, s.count(), !changed.Before(s.start)
	}},
	{"Metricbeat, `skip_older`", "elastic/beats 353f11c", func(s sight) (time.Time, int32, bool) {
		skips := s.EventTime.Time.Before(s.start) && !s.EventTime.IsZero()
		if !s.LastTimestamp.IsZero() {
			skips = skips || s.LastTimestamp.Time.Before(s.start)
		}
		return s.LastTimestamp.Time, s.Count, !skips
	}},
	{"OpenTelemetry `k8s_events`", "opentelemetry-collector-contrib c274a00", func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.EventTime.Time, s.LastTimestamp.Time, s.FirstTimestamp.Time)
		return at, s.Count, !at.Before(s.start)
	}},
	{"OpenTelemetry `k8sobjects`", "opentelemetry-collector-contrib v0.111.0, whole Events", seriesFirst},
	{"Grafana Alloy", "grafana/alloy 66ebea8", func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.EventTime.Time)
		return at, s.Count, at.After(s.start)
	}},
	{"Datadog agent", "DataDog/datadog-agent 042183c", func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Fluent Bit", "fluent/fluent-bit c473bd9, item_get_timestamp", func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.FirstTimestamp.Time, s.CreationTimestamp.Time)
		return at, s.Count, s.now.Sub(at) < time.Hour
	}},
	{"kubernetes-event-exporter", "resmoio/kubernetes-event-exporter 907ce91", func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.EventTime.Time)
		return at, s.Count, s.created && s.now.Sub(at) <= 5*time.Second
	}},
}

// count returns the count of a reader that passes the whole Event on.
func (s sight) count() int32 {
	if s.Series != nil {
		return s.Series.Count
	}
	return max(s.Count, 1)
}

// printed is the table of the server.
func printed(s sight) (time.Time, int32, bool) {
	if s.Series != nil {
		return s.Series.LastObservedTime.Time, s.Series.Count, true
	}
	return firstOf(s.LastTimestamp.Time, s.FirstTimestamp.Time, s.EventTime.Time), s.count(), true
}

// seriesFirst are readers that know series.
func seriesFirst(s sight) (time.Time, int32, bool) {
	if s.Series != nil {
		return s.Series.LastObservedTime.Time, s.Series.Count, true
	}
	return firstOf(s.LastTimestamp.Time, s.EventTime.Time, s.FirstTimestamp.Time), s.count(), true
}

// headlamp knows series, but not that an Event without a count has occurred once.
func headlamp(s sight) (time.Time, int32, bool) {
	at, count, _ := seriesFirst(s)
	if s.Series == nil {
		count = s.Count
	}
	return at, count, true
}

func firstOf(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
