package listdecoder

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/eventseries/eventseries/series"
)

// layout has the numbers of the fields of an Event in a group version: those in the
// generated.proto of k8s.io/api.
type layout struct {
	metadata, eventTime, series, controller, instance, action, reason, regarding, related,
	note, eventType, deprecatedCount protowire.Number
}

var layouts = map[schema.GroupVersion]*layout{
	eventsv1.SchemeGroupVersion: {
		metadata: 1, eventTime: 2, series: 3, controller: 4, instance: 5, action: 6, reason: 7, regarding: 8, related: 9,
		note: 10, eventType: 11, deprecatedCount: 15,
	},
	corev1.SchemeGroupVersion: {
		metadata: 1, eventTime: 10, series: 11, controller: 14, instance: 15, action: 12, reason: 3, regarding: 2, related: 13,
		note: 4, eventType: 9, deprecatedCount: 8,
	},
}

// Fields of messages within Events.
const (
	metaName, metaNamespace, metaVersion, metaLabels, metaAnnotations   = 1, 3, 6, 11, 12
	metaManagedFields, managedOperation                                 = 17, 2
	refKind, refNamespace, refName, refUID, refAPIVersion, refFieldPath = 1, 2, 3, 4, 5, 7
	seriesCount, seriesLast                                             = 1, 2
	entryKey, entryValue                                                = 1, 2
)

// decoder decodes Events. It reuses the memory of the previous one.
type decoder struct {
	fields *layout
	words  words

	event   eventsv1.Event
	series  eventsv1.EventSeries
	related corev1.ObjectReference
}

// decode decodes an Event as far as the documentation of the package says. The Event is
// valid until the next call. If there is an error, the Event is incomplete.
func (d *decoder) decode(data []byte) (*eventsv1.Event, error) {
	e, l := &d.event, d.fields
	clear(e.Labels)
	clear(e.Annotations)
	*e = eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Labels: e.Labels, Annotations: e.Annotations, ManagedFields: e.ManagedFields[:0]}}
	return e, eachField(data, func(f field) error {
		switch f.number {
		case l.metadata:
			return f.message(d.metadata)
		case l.eventTime:
			return f.message(e.EventTime.Unmarshal)
		case l.series:
			if e.Series == nil {
				d.series = eventsv1.EventSeries{}
				e.Series = &d.series
			}
			return f.message(d.eventSeries)
		case l.controller:
			return f.word(d.words, &e.ReportingController)
		case l.instance:
			return f.word(d.words, &e.ReportingInstance)
		case l.action:
			return f.word(d.words, &e.Action)
		case l.reason:
			return f.word(d.words, &e.Reason)
		case l.regarding:
			return f.message(func(data []byte) error { return d.reference(data, &e.Regarding) })
		case l.related:
			if e.Related == nil {
				d.related = corev1.ObjectReference{}
				e.Related = &d.related
			}
			return f.message(func(data []byte) error { return d.reference(data, &d.related) })
		case l.note:
			return f.word(d.words, &e.Note)
		case l.eventType:
			return f.word(d.words, &e.Type)
		case l.deprecatedCount:
			return f.int32(&e.DeprecatedCount)
		}
		return nil
	})
}

func (d *decoder) metadata(data []byte) error {
	m := &d.event.ObjectMeta
	return eachField(data, func(f field) error {
		switch f.number {
		case metaName:
			return f.string(&m.Name)
		case metaNamespace:
			return f.word(d.words, &m.Namespace)
		case metaVersion:
			return f.string(&m.ResourceVersion)
		case metaLabels:
			return f.message(func(data []byte) error {
				// The others are of no interest, and some differ from Event to Event.
				return d.entry(data, &m.Labels, func(key []byte) bool { return string(key) == series.LabelState })
			})
		case metaAnnotations:
			return f.message(func(data []byte) error {
				return d.entry(data, &m.Annotations, func([]byte) bool { return true })
			})
		case metaManagedFields:
			m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{})
			return f.message(d.managedFields)
		}
		return nil
	})
}

func (d *decoder) managedFields(data []byte) error {
	all := d.event.ManagedFields
	return eachField(data, func(f field) error {
		if f.number == managedOperation {
			return f.word(d.words, (*string)(&all[len(all)-1].Operation))
		}
		return nil // which fields they are is of no interest
	})
}

// entry adds an entry to a map, if its key is wanted.
func (d *decoder) entry(data []byte, to *map[string]string, wanted func(key []byte) bool) error {
	var key, value []byte
	err := eachField(data, func(f field) error {
		switch f.number {
		case entryKey:
			return f.bytes(&key)
		case entryValue:
			return f.bytes(&value)
		}
		return nil
	})
	if err != nil || !wanted(key) {
		return err
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[d.words.share(key)] = d.words.share(value)
	return nil
}

func (d *decoder) eventSeries(data []byte) error {
	return eachField(data, func(f field) error {
		switch f.number {
		case seriesCount:
			return f.int32(&d.series.Count)
		case seriesLast:
			return f.message(d.series.LastObservedTime.Unmarshal)
		}
		return nil
	})
}

func (d *decoder) reference(data []byte, r *corev1.ObjectReference) error {
	return eachField(data, func(f field) error {
		switch f.number {
		case refKind:
			return f.word(d.words, &r.Kind)
		case refNamespace:
			return f.word(d.words, &r.Namespace)
		case refName:
			return f.string(&r.Name)
		case refUID:
			return f.string((*string)(&r.UID))
		case refAPIVersion:
			return f.word(d.words, &r.APIVersion)
		case refFieldPath:
			return f.word(d.words, &r.FieldPath)
		}
		return nil
	})
}

// field is a field of a message.
type field struct {
	number   protowire.Number
	wireType protowire.Type
	data     []byte // if the type is bytes
	varint   uint64 // if the type is varint
}

// eachField passes the fields of a message to visit, in their order.
func eachField(data []byte, visit func(field) error) error {
	for len(data) > 0 {
		number, wireType, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		data = data[tag:]
		f := field{number: number, wireType: wireType}
		var n int
		switch wireType {
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(data)
		default:
			n = protowire.ConsumeFieldValue(number, wireType, data)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", number, protowire.ParseError(n))
		}
		data = data[n:]
		if err := visit(f); err != nil {
			return fmt.Errorf("field %d: %w", number, err)
		}
	}
	return nil
}

func (f field) bytes(to *[]byte) error {
	if f.wireType != protowire.BytesType {
		return fmt.Errorf("wire type %d", f.wireType)
	}
	*to = f.data
	return nil
}

func (f field) string(to *string) error {
	var b []byte
	err := f.bytes(&b)
	*to = string(b)
	return err
}

// word is string for a value that many Events have.
func (f field) word(known words, to *string) error {
	var b []byte
	err := f.bytes(&b)
	*to = known.share(b)
	return err
}

func (f field) int32(to *int32) error {
	if f.wireType != protowire.VarintType {
		return fmt.Errorf("wire type %d", f.wireType)
	}
	*to = int32(f.varint) // as the generated code does
	return nil
}

func (f field) message(unmarshal func([]byte) error) error {
	var b []byte
	if err := f.bytes(&b); err != nil {
		return err
	}
	return unmarshal(b)
}

// words has strings that occurred in a page. Those that occur again share memory.
type words map[string]string

// maxWords and maxWordBytes bound words.
const (
	maxWords     = 1024
	maxWordBytes = 256
)

func (w words) share(b []byte) string {
	s, ok := w[string(b)]
	if ok {
		return s
	}
	s = string(b)
	if len(s) <= maxWordBytes {
		if len(w) == maxWords {
			clear(w)
		}
		w[s] = s
	}
	return s
}
