package listdecoder

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fields of runtime.Unknown, which wraps each object, and of lists.
const (
	wrapperType = 1
	wrapperRaw  = 2
	typeVersion = 1
	typeKind    = 2
	listMeta    = 1
	listItems   = 2
)

// beginning returns how the API server begins a list of Events of a group version in
// protobuf: with four bytes that mark the format, the type of the object, and the tag of the
// object itself.
func beginning(gv schema.GroupVersion) []byte {
	field := func(b []byte, number protowire.Number, value string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), value)
	}
	typeMeta := field(field(nil, typeVersion, gv.String()), typeKind, "EventList")
	return protowire.AppendTag(field([]byte("k8s\x00"), wrapperType, string(typeMeta)), wrapperRaw, protowire.BytesType)
}

// Decode decodes a list of Events of a group version in protobuf, passes the Events to receive,
// and returns the metadata of the list. ok is false if r has something else. Then Decode has
// not consumed anything.
func Decode(r *bufio.Reader, gv schema.GroupVersion, receive Receiver) (meta metav1.ListMeta, ok bool, err error) {
	fields, known := layouts[gv]
	begin := beginning(gv)
	if !known || receive == nil {
		return meta, false, nil
	}
	if head, _ := r.Peek(len(begin)); !bytes.Equal(head, begin) {
		return meta, false, nil
	}
	_, _ = r.Discard(len(begin)) // they are buffered
	l := list{message: message{r: r, left: math.MaxInt64}, decoder: decoder{fields: fields, words: make(words)}}
	if meta, err = l.read(receive); err == nil {
		_, err = io.Copy(io.Discard, r) // fields that an API server leaves empty
	}
	if err != nil {
		return metav1.ListMeta{}, true, fmt.Errorf("listdecoder: read list of %s events: %w", gv, err)
	}
	return meta, true, nil
}

// list reads a list.
type list struct {
	message

	decoder decoder
	buffer  bytes.Buffer // of the field that is being decoded
}

func (l *list) read(receive Receiver) (meta metav1.ListMeta, err error) {
	if l.left, err = l.length(); err != nil {
		return meta, err
	}
	var malformed error // the first Event that is
	for items := 0; l.left > 0; {
		number, wireType, err := l.tag()
		if err == nil && (number == listMeta || number == listItems) && wireType != protowire.BytesType {
			err = fmt.Errorf("field %d has wire type %d", number, wireType)
		}
		if err == nil && wireType == protowire.BytesType {
			err = l.bytes(&l.buffer)
		} else if err == nil {
			err = l.skip(wireType)
		}
		if err != nil {
			return meta, fmt.Errorf("after %d events: %w", items, err)
		}
		switch number {
		case listMeta:
			if err := meta.Unmarshal(l.buffer.Bytes()); err != nil {
				return meta, fmt.Errorf("metadata: %w", err)
			}
		case listItems:
			event, err := l.decoder.decode(l.buffer.Bytes())
			if err == nil {
				receive(event)
			} else if malformed == nil {
				malformed = fmt.Errorf("event %d of the page, %s/%s: %w", items, event.Namespace, event.Name, err)
			}
			items++
		}
	}
	return meta, malformed
}

// message reads a message of which a number of bytes is left.
type message struct {
	r       *bufio.Reader
	left    int64
	limited io.LimitedReader // kept, because it is allocated
}

var errTruncated = errors.New("field exceeds the message")

// ReadByte implements [io.ByteReader].
func (m *message) ReadByte() (byte, error) {
	if m.left == 0 {
		return 0, errTruncated
	}
	m.left--
	b, err := m.r.ReadByte()
	return b, unexpected(err)
}

func (m *message) tag() (protowire.Number, protowire.Type, error) {
	v, err := binary.ReadUvarint(m)
	if err != nil {
		return 0, 0, err
	}
	number, wireType := protowire.DecodeTag(v)
	if number < protowire.MinValidNumber {
		return 0, 0, fmt.Errorf("invalid tag %#x", v)
	}
	return number, wireType, nil
}

// length reads a length that is not greater than what is left.
func (m *message) length() (int64, error) {
	n, err := binary.ReadUvarint(m)
	if err == nil && n > uint64(m.left) {
		err = fmt.Errorf("%w: its length is %d, and %d bytes are left", errTruncated, n, m.left)
	}
	return int64(n), err
}

// bytes reads a field of the type bytes.
func (m *message) bytes(into *bytes.Buffer) error {
	into.Reset()
	n, err := m.length()
	if err != nil {
		return err
	}
	m.left -= n
	m.limited = io.LimitedReader{R: m.r, N: n}
	read, err := into.ReadFrom(&m.limited)
	if err == nil && read < n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// skip skips the value of an unknown field, which is not of the type bytes.
func (m *message) skip(wireType protowire.Type) (err error) {
	size := 0
	switch wireType {
	case protowire.VarintType:
		_, err = binary.ReadUvarint(m)
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	default:
		return fmt.Errorf("wire type %d", wireType)
	}
	for ; size > 0 && err == nil; size-- {
		_, err = m.ReadByte()
	}
	return err
}

// unexpected turns the end of the input into an error.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
