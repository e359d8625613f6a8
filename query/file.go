package query

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/eventseries/eventseries/internal/apigroup"
)

// ErrNoEvents says that a file contains no Events, and no list of Events that is empty. The error
// that wraps it says what the file contains.
var ErrNoEvents = errors.New("no Events")

// ReadEvents reads the Events in a file for [NewFileReader], in any form in which programs write them:
//
//   - JSON or YAML, also compressed with gzip
//   - one or several objects, arrays, or lists, such as the output of kubectl get events
//   - changes of a watch, as kubectl get events --watch --output-watch-events writes them
//   - the standard output of kubectl cluster-info dump, which contains logs
//
// It converts Events of core/v1 to events.k8s.io/v1, and skips other objects. What it cannot read is
// an error that says why. ReadEvents returns the other Events with it. If there are none, the error can
// be [ErrNoEvents].
func ReadEvents(r io.Reader) ([]eventsv1.Event, error) {
	data, err := contentOf(r)
	f := &eventFile{others: make(map[string]int)}
	f.fail(err)
	if bytes.Contains(data, []byte("==== START logs")) {
		data = logs.ReplaceAll(data, nil)
	}
	begin := 0
	for _, place := range append(separator.FindAllIndex(data, -1), []int{len(data), len(data)}) {
		f.addDocument(data[begin:place[0]])
		begin = place[1]
	}
	const want = "want the output of kubectl get events -o json or -o yaml"
	switch {
	case f.err != nil && len(f.events) == 0:
		return nil, fmt.Errorf("query: read events: %w: %s", f.err, want)
	case f.err != nil:
		return f.events, fmt.Errorf("query: read events: %w", f.err)
	case len(f.events) == 0 && !f.isEmpty:
		return nil, fmt.Errorf("query: %w, but %s: %s", ErrNoEvents, f.contents(data), want)
	}
	return f.events, nil
}

var (
	// separator is between documents of YAML.
	separator = regexp.MustCompile(`(?m)^---[ \t]*(#.*)?\r?$`)
	// logs are those that kubectl cluster-info dump writes between objects.
	logs = regexp.MustCompile(`(?ms)^==== START logs for container .*?(==== END logs for container [^\n]*|\z)`)
	// beginning is that of an object or an array of objects in JSON on a line.
	beginning = regexp.MustCompile(`(?m)^(\{|\[\s*[\[\]{])`)
)

// contentOf reads all of r, and uncompresses it. It returns what it has read with an error.
func contentOf(r io.Reader) ([]byte, error) {
	buffered := bufio.NewReader(r)
	head, _ := buffered.Peek(512) // an error returns
	kind := http.DetectContentType(head)
	switch {
	case kind == "application/x-gzip":
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		return contentOf(unpacked)
	case !strings.HasSuffix(kind, "charset=utf-8"): // an archive, or UTF-16 of PowerShell
		return nil, fmt.Errorf("no text in UTF-8 (%s), and not compressed with gzip", kind)
	}
	data, err := io.ReadAll(buffered)
	return bytes.TrimPrefix(data, []byte("\ufeff")), err
}

// eventFile is what has been read of a file.
type eventFile struct {
	events  []eventsv1.Event
	others  map[string]int // objects that are no Events, by kind
	isEmpty bool           // a list of Events is empty
	err     error          // the first one
}

func (f *eventFile) fail(err error) { f.err = cmp.Or(f.err, err) }

// contents says what a file without Events contains.
func (f *eventFile) contents(data []byte) string {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return "nothing at all"
	case len(f.others) == 0:
		return "neither objects of JSON nor of YAML"
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(f.others)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", f.others[kind], kind))
	}
	return strings.Join(kinds, ", ")
}

// addDocument adds the objects of a document: those of JSON, also between lines of text, or one of YAML.
func (f *eventFile) addDocument(data []byte) {
	isJSON := false
	for rest := bytes.TrimSpace(data); ; {
		place := beginning.FindIndex(rest)
		if place == nil {
			break
		}
		isJSON = true
		rest = rest[place[0]:]
		decoder := json.NewDecoder(bytes.NewReader(rest))
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			f.fail(err)
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			rest = rest[len(line):] // without the line break, so that nothing begins here
			continue
		}
		f.add(value, metav1.TypeMeta{})
		rest = bytes.TrimSpace(rest[decoder.InputOffset():])
	}
	if isJSON || len(bytes.TrimSpace(data)) == 0 {
		return
	}
	value, err := yaml.ToJSON(data)
	f.fail(err)
	f.add(value, metav1.TypeMeta{})
}

// add adds the Events in a value. The items of some lists have no type; then it is meta.
func (f *eventFile) add(data []byte, meta metav1.TypeMeta) {
	switch {
	case len(data) > 0 && data[0] == '[':
		f.isEmpty = f.addAll(data, meta) == 0 || f.isEmpty
		return
	case len(data) == 0 || data[0] != '{':
		return // text
	}
	object := struct {
		metav1.TypeMeta                          `json:",inline"`
		Items, Object, Regarding, InvolvedObject json.RawMessage
		Type                                     any
	}{TypeMeta: meta}
	if err := json.Unmarshal(data, &object); err != nil {
		f.fail(err)
		return
	}
	events, core := eventKind, corev1.SchemeGroupVersion.WithKind("Event")
	kind := object.GroupVersionKind()
	if object.APIVersion == "" && (object.Kind == "" || object.Kind == "Event") {
		switch { // kubectl and the API server leave out the types of some objects
		case object.Regarding != nil:
			kind = events
		case object.InvolvedObject != nil:
			kind = core
		}
	}
	switch {
	case object.Kind == "" && object.Type == string(watch.Bookmark):
		f.isEmpty = true
	case (object.Kind == "" || object.Kind == "WatchEvent") && object.Object != nil:
		f.add(object.Object, metav1.TypeMeta{})
	case object.Items != nil && (object.Kind == "" || strings.HasSuffix(object.Kind, "List")):
		item := metav1.TypeMeta{APIVersion: object.APIVersion, Kind: strings.TrimSuffix(object.Kind, "List")}
		if item.Kind == "" {
			item.APIVersion = "" // a List
		}
		if n := f.addAll(object.Items, item); n == 0 && (item.Kind == "" || item.Kind == "Event") {
			f.isEmpty = true
		}
	case kind.GroupKind() == core.GroupKind():
		var event corev1.Event
		if f.decode(data, &event) {
			f.events = append(f.events, *apigroup.FromCore(&event))
		}
	case kind.GroupKind() == events.GroupKind():
		var event eventsv1.Event
		if f.decode(data, &event) {
			f.events = append(f.events, event)
		}
	case kind.Kind == "":
		f.others["object without a kind"]++
	default:
		f.others[strings.TrimPrefix(kind.GroupVersion().String()+" "+kind.Kind, " ")]++
	}
}

func (f *eventFile) addAll(data []byte, meta metav1.TypeMeta) (n int) {
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		f.fail(err)
	}
	for _, item := range items {
		f.add(item, meta)
	}
	return len(items)
}

// decode decodes an Event. Old versions of kubectl cluster-info dump write its metadata beside its fields.
func (f *eventFile) decode(data []byte, event metav1.Object) bool {
	err := json.Unmarshal(data, event)
	if err == nil && event.GetName() == "" {
		beside := metav1.ObjectMeta{}
		if json.Unmarshal(data, &beside) == nil && beside.Name != "" {
			err = json.Unmarshal(fmt.Appendf(nil, `{"metadata":%s}`, data), event)
		}
	}
	if err != nil {
		f.fail(fmt.Errorf("event %s/%s: %w", event.GetNamespace(), event.GetName(), err))
	}
	return err == nil
}

// NewFileReader returns a Reader of Events in memory, which [ReadEvents] returns. It selects and sorts as
// the API server does, and cannot watch. If an Event occurs several times, its latest version
// counts, or the last one if the versions are the same. Events without a name are all different. One
// without a namespace is in that of its object. Set [Query.At] to the time of the file.
func NewFileReader(events []eventsv1.Event, opts Options) *Reader {
	r := newReader(opts)
	version := func(e *eventsv1.Event) uint64 {
		v, _ := strconv.ParseUint(e.ResourceVersion, 10, 64) // 0 if it is none
		return v
	}
	places := make(map[types.NamespacedName]int)
	all := slices.Clone(events)
	events = nil
	for i := range all {
		e := &all[i]
		e.Namespace = cmp.Or(e.Namespace, e.Regarding.Namespace)
		name := types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
		place, known := places[name]
		switch {
		case e.Name == "" || !known:
			places[name] = len(events)
			events = append(events, *e)
		case version(e) >= version(&events[place]):
			events[place] = *e
		}
	}
	slices.SortStableFunc(events, func(a, b eventsv1.Event) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	g := group{resource: eventsv1.Resource("events"), field: eventsField}
	g.list = func(_ context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
		selector, err := fields.ParseSelector(opts.FieldSelector)
		if err != nil {
			return nil, err
		}
		for _, term := range selector.Requirements() {
			if !selectable(&eventsv1.Event{}).Has(term.Field) {
				return nil, apierrors.NewBadRequest("field label not supported: " + term.Field)
			}
		}
		list := &eventsv1.EventList{}
		for i := range events {
			if (namespace == "" || namespace == events[i].Namespace) && (selector.Empty() || selector.Matches(selectable(&events[i]))) {
				list.Items = append(list.Items, events[i])
			}
		}
		return list, nil
	}
	r.groups = [2]group{g, g}
	return r
}

// selectable returns the fields by which an API server selects Events.
func selectable(e *eventsv1.Event) fields.Set {
	return fields.Set{
		"metadata.name": e.Name, "metadata.namespace": e.Namespace, "reason": e.Reason, "type": e.Type,
		"reportingController": e.ReportingController, "source": e.DeprecatedSource.Component,
		"regarding.kind": e.Regarding.Kind, "regarding.namespace": e.Regarding.Namespace, "regarding.name": e.Regarding.Name,
		"regarding.uid": string(e.Regarding.UID), "regarding.apiVersion": e.Regarding.APIVersion,
		"regarding.resourceVersion": e.Regarding.ResourceVersion, "regarding.fieldPath": e.Regarding.FieldPath,
	}
}
