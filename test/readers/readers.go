package readers

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// sight is an Event that a reader receives through core/v1.
type sight struct {
	*corev1.Event
	old     *corev1.Event // what the reader received before; nil if it has not received the Event before
	now     time.Time
	start   time.Time // of the reader
	written time.Time // of the newest managedFields
}

// isNew reports whether the reader has not received the Event before.
func (s sight) isNew() bool { return s.old == nil }

// isInitial reports whether the Event is there when the reader starts.
func (s sight) isInitial() bool { return s.isNew() && s.written.Before(s.start) }

// reader is the rules of a program: which time and count it shows of an Event. ok is false if it
// ignores the Event. A program that exports makes a record of each Event that it does not ignore.
type reader struct {
	name, source string
	exports      bool
	show         func(s sight) (at time.Time, count int32, ok bool)
}

// readers are the programs of the table in docs/consumers.md.
var readers = []reader{
	{"kubectl get events", "kubernetes v1.36.3, printEvent", false, printed},
	{"kubectl events", "kubectl v0.36.3", false, seriesFirst},
	{"kubectl describe, its order", "kubectl v0.36.3, SortableEvents", false, func(s sight) (time.Time, int32, bool) {
		_, count, _ := printed(s)
		return s.LastTimestamp.Time, count, true
	}},
	{"k9s", "derailed/k9s 24cf462, the table of the server", false, printed},
	{"Kubernetes Dashboard", "kubernetes/dashboard 2f3f7b0", false, func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.FirstTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Headlamp", "kubernetes-sigs/headlamp 6d2b42c, event.ts", false, headlamp},
	{"OpenShift console", "openshift/console da1f132, events.tsx", false, func(s sight) (time.Time, int32, bool) {
		at, count, _ := headlamp(s)
		return firstOf(s.LastTimestamp.Time, at), count, true
	}},
	{"Rancher", "rancher/dashboard 1094f51, event.js", false, func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.CreationTimestamp.Time), s.Count, true
	}},
	{"Freelens", "freelensapp/freelens 053afc1, events.tsx", false, func(s sight) (time.Time, int32, bool) {
		return s.LastTimestamp.Time, s.Count, true
	}},
	{"Argo CD", "argoproj/argo-cd 37ee009, events-list.tsx", false, func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Botkube", "kubeshop/botkube ee94e19", true, func(s sight) (time.Time, int32, bool) {
		if s.LastTimestamp.IsZero() && s.Series != nil {
			return s.Series.LastObservedTime.Time, s.Series.Count, true
		}
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Argo Events, `afterStart`", "argoproj/argo-events 6478ece, resource source", true, func(s sight) (time.Time, int32, bool) {
		changed := firstOf(s.written, s.CreationTimestamp.Time)
		return changed, s.count(), !changed.Before(s.start)
	}},
	{"Knative ApiServerSource", "knative/eventing 0cab4e5, delegate.go; whole Events", true, seriesFirst},
	{"Metricbeat, `skip_older`", "elastic/beats 353f11c", true, func(s sight) (time.Time, int32, bool) {
		skips := s.EventTime.Time.Before(s.start) && !s.EventTime.IsZero()
		if !s.LastTimestamp.IsZero() {
			skips = skips || s.LastTimestamp.Time.Before(s.start)
		}
		return s.LastTimestamp.Time, s.Count, !skips
	}},
	{"OpenTelemetry `k8s_events`", "opentelemetry-collector-contrib c274a00", true, func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.EventTime.Time, s.LastTimestamp.Time, s.FirstTimestamp.Time)
		return at, s.Count, !at.Before(s.start)
	}},
	{"OpenTelemetry `k8sobjects`", "opentelemetry-collector-contrib v0.111.0, whole Events", true, seriesFirst},
	{"Sumo Logic", "SumoLogic/sumologic-otel-collector 22762ce, rawk8seventsreceiver", true, func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.EventTime.Time, s.LastTimestamp.Time, s.FirstTimestamp.Time)
		return at, s.count(), !at.Before(s.start.Add(-time.Minute))
	}},
	{"Grafana Alloy", "grafana/alloy 66ebea8", true, func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.EventTime.Time)
		return at, s.Count, at.After(s.start)
	}},
	{"Datadog agent", "DataDog/datadog-agent 042183c", true, func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"New Relic", "newrelic/nri-kube-events 075e5a0, createEventsInformer; whole Events", true, func(s sight) (time.Time, int32, bool) {
		at, count, _ := seriesFirst(s)
		return at, count, !s.isInitial()
	}},
	{"Sentry", "getsentry/sentry-kubernetes 0281edc, watcher_events.go; dated when it is received", true, func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.EventTime.Time)
		return s.now, s.Count, at.IsZero() || !at.Before(s.start)
	}},
	{"Coroot", "coroot/coroot-cluster-agent 1025dff, k8s.go", true, func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.EventTime.Time, s.now)
		if s.isNew() {
			return at, s.Count, s.LastTimestamp.IsZero() || !s.LastTimestamp.Time.Before(s.start)
		}
		return at, s.Count, s.Count > s.old.Count
	}},
	{"Azure Container Insights", "microsoft/Docker-Provider 69eeda6, in_kube_events.rb", true, func(s sight) (time.Time, int32, bool) {
		return s.LastTimestamp.Time, s.Count, s.isNew() || s.Count != s.old.Count
	}},
	{"kube-eventer", "AliyunContainerService/kube-eventer 0974bca, kubernetes_source.go", true, func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time, s.now), s.Count, !s.isInitial()
	}},
	{"KubeSphere kube-events", "kubesphere/kube-events 0bac1cf, kube_events_exporter.go; whole Events", true, seriesFirst},
	{"eventrouter", "vmware-archive/eventrouter 0bf9ac7, eventrouter.go; whole Events", true, seriesFirst},
	{"k8s-event-logger-operator", "bakito/k8s-event-logger-operator 0a1d84c, logEvent", true, func(s sight) (time.Time, int32, bool) {
		return s.LastTimestamp.Time, s.Count, !s.isInitial()
	}},
	{"event_exporter", "caicloud/event_exporter 4af4e42, metrics.go: a gauge", false, func(s sight) (time.Time, int32, bool) {
		return s.now, s.Count, true
	}},
	{"kspan", "weaveworks-experiments/kspan 0e65741, eventToSpan: a span for each update", true, func(s sight) (time.Time, int32, bool) {
		return firstOf(s.LastTimestamp.Time, s.EventTime.Time), s.Count, true
	}},
	{"Fluent Bit", "fluent/fluent-bit c473bd9, item_get_timestamp", true, func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.FirstTimestamp.Time, s.CreationTimestamp.Time)
		return at, s.Count, s.now.Sub(at) < time.Hour
	}},
	{"kubewatch", "robusta-dev/kubewatch 0c9e19e, processItem", true, func(s sight) (time.Time, int32, bool) {
		return s.now, s.count(), !s.isNew() || s.CreationTimestamp.After(s.start)
	}},
	{"Tilt", "tilt-dev/tilt 0c2bbc8, event_watch_manager.go", true, func(s sight) (time.Time, int32, bool) {
		return s.now, s.count(), !s.CreationTimestamp.Time.Before(s.start)
	}},
	{"kubernetes-event-exporter", "resmoio/kubernetes-event-exporter 907ce91", true, func(s sight) (time.Time, int32, bool) {
		at := firstOf(s.LastTimestamp.Time, s.EventTime.Time)
		return at, s.Count, s.isNew() && s.now.Sub(at) <= 5*time.Second
	}},
	{"k8s-event-logger", "max-rocket-internet/k8s-event-logger 3f2c702, main.go; whole Events, through each group", true, seriesFirst},
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
