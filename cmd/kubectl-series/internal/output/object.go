package output

import (
	"cmp"
	"maps"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// GroupVersion is that of the printed objects. The server does not serve it.
var GroupVersion = schema.GroupVersion{Group: "eventseries.dev", Version: "v1alpha1"}

// object is a series. Its fields are those of an Event where both have them.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	State               string                  `json:"state"`
	Count               int32                   `json:"count"`
	LowerBound          bool                    `json:"lowerBound,omitempty"` // the event can have occurred more often
	Rate                float64                 `json:"rate"`                 // per second
	FirstObservedTime   *metav1.MicroTime       `json:"firstObservedTime,omitempty"`
	LastObservedTime    *metav1.MicroTime       `json:"lastObservedTime,omitempty"`
	StaleTime           *metav1.MicroTime       `json:"staleTime,omitempty"`
	NextWriteTime       *metav1.MicroTime       `json:"nextWriteTime,omitempty"`
	QuietWindow         *metav1.Duration        `json:"quietWindow,omitempty"` // of an ongoing series
	ObservedAt          metav1.MicroTime        `json:"observedAt"`            // the time of the state
	Type                string                  `json:"type"`
	Reason              string                  `json:"reason"`
	Action              string                  `json:"action,omitempty"`
	Regarding           corev1.ObjectReference  `json:"regarding"`
	Related             *corev1.ObjectReference `json:"related,omitempty"`
	Note                string                  `json:"note"`
	LastNote            string                  `json:"lastNote,omitempty"`
	ReportingController string                  `json:"reportingController"`
	ReportingInstance   string                  `json:"reportingInstance,omitempty"`
	Node                string                  `json:"node,omitempty"`
	Recorder            string                  `json:"recorder"`
	Problem             string                  `json:"problem,omitempty"`
}

func newObject(item *query.Item) *object {
	e := item.Event
	o := &object{
		TypeMeta:            metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "Series"},
		ObjectMeta:          e.ObjectMeta,
		State:               item.State.String(),
		Count:               item.Count,
		LowerBound:          item.LowerBound(),
		Rate:                math.Round(item.Rate()*1e6) / 1e6,
		FirstObservedTime:   microTime(item.First),
		LastObservedTime:    microTime(item.Last),
		StaleTime:           microTime(item.StaleAt),
		NextWriteTime:       microTime(item.NextWrite),
		ObservedAt:          metav1.NewMicroTime(item.At.UTC()),
		Type:                e.Type,
		Reason:              e.Reason,
		Action:              e.Action,
		Regarding:           e.Regarding,
		Related:             e.Related,
		Note:                e.Note,
		LastNote:            item.LastNote,
		ReportingController: item.Controller(),
		ReportingInstance:   cmp.Or(e.ReportingInstance, e.DeprecatedSource.Host),
		Node:                item.Node(),
		Recorder:            string(item.Recorder),
	}
	if item.State == series.Ongoing {
		o.QuietWindow = &metav1.Duration{Duration: item.QuietWindow()}
	}
	if item.Problem != nil {
		o.Problem = item.Problem.Error()
	}
	return o
}

// DeepCopyObject implements runtime.Object for printers. They do not change objects.
func (o *object) DeepCopyObject() runtime.Object {
	c := *o
	return &c
}

// Object returns a series as an object to print, and to look up fields in.
func Object(item *query.Item) *unstructured.Unstructured {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newObject(item))
	if err != nil { // only types that JSON does not know can fail
		panic(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t.UTC())
	return &m
}

func newList(items []unstructured.Unstructured) *unstructured.UnstructuredList {
	if items == nil {
		items = []unstructured.Unstructured{}
	}
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": GroupVersion.String(), "kind": "SeriesList"},
		Items:  items,
	}
}

// printable returns a value of an object without characters that could control a terminal.
func printable(value any) any {
	switch v := value.(type) {
	case string:
		return text.Printable(v)
	case []any:
		for i := range v {
			v[i] = printable(v[i])
		}
	case map[string]any:
		for k, value := range maps.Clone(v) {
			delete(v, k)
			v[text.Printable(k)] = printable(value)
		}
	}
	return value
}

func event(item *query.Item) *metav1.PartialObjectMetadata {
	e := &metav1.PartialObjectMetadata{}
	e.APIVersion, e.Kind, e.Name = "events.k8s.io/v1", "Event", text.Clean(item.Name)
	return e
}
