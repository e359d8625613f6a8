package series

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/eventseries/eventseries/internal/text"
)

// hashDigits is the length of the hash of a key in a name.
const hashDigits = 16

// BaseName returns the name that the Event of a key has if it is free: the name of
// the regarding object and a hash of the key. It is the same in every process, so
// a restarted recorder finds the Event that it wrote before.
func (k *Key) BaseName() string {
	return eventName(k.Regarding.Name, k.appendHash(make([]byte, 0, hashDigits)))
}

// UniqueName returns a name for the Event of a key whose base name is taken. It
// contains the time of the first occurrence in addition; n distinguishes names of
// the same time.
func (k *Key) UniqueName(first time.Time, n int) string {
	// Unsigned, because a time before 1970 would put a sign into the name.
	suffix := append(k.appendHash(make([]byte, 0, 2*hashDigits+1)), '.')
	return eventName(k.Regarding.Name, strconv.AppendUint(suffix, uint64(first.UnixNano())+uint64(n), 16))
}

// Named reports whether [Key.BaseName] or [Key.UniqueName] could have returned name:
// whether it contains the hash of the key. An Event with another name was not
// written for this key.
func (k *Key) Named(name string) bool {
	base := k.BaseName()
	if name == base {
		return true
	}
	// A unique name keeps less of a long object name than the base name, so compare
	// with a unique name of the same time.
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot-1 > hashDigits || !isHex(name[dot+1:]) {
		return false
	}
	suffix := k.appendHash(make([]byte, 0, 2*hashDigits+1))
	return name == eventName(k.Regarding.Name, append(suffix, name[dot:]...))
}

// appendHash appends the hash of k in hexadecimal digits.
func (k *Key) appendHash(to []byte) []byte {
	var hash [hashDigits / 2]byte
	binary.BigEndian.PutUint64(hash[:], k.hash())
	return hex.AppendEncode(to, hash[:])
}

func isHex(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if (s[i] < '0' || s[i] > '9') && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}

// eventName joins the name of an object and a suffix to the name of an Event.
//
// kube-apiserver requires a DNS-1123 subdomain of at most 253 bytes (validation
// NameIsDNSSubdomain). The name of an object need not be one: `system:discovery` is
// a valid name of a ClusterRole. eventName replaces what is not permitted; the
// suffix distinguishes different objects.
func eventName(object string, suffix []byte) string {
	const limit = validation.DNS1123SubdomainMaxLength
	name := text.AppendSubdomain(make([]byte, 0, limit+1), object)
	if room := limit - len(suffix) - 1; len(name) > room {
		name = bytes.TrimRight(name[:room], ".-")
	}
	if len(name) > 0 {
		name = append(name, '.')
	}
	return string(append(name, suffix...))
}
