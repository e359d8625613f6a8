package series

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
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
	hash := k.appendHash(make([]byte, 0, 2*hashDigits+1))
	buf := make([]byte, 0, maxName+1)
	if string(appendEventName(buf, k.Regarding.Name, hash)) == name {
		return true
	}
	// A unique name keeps less of a long object name than the base name, so compare
	// with a unique name of the same time.
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot-1 > hashDigits || !isHex(name[dot+1:]) {
		return false
	}
	return string(appendEventName(buf, k.Regarding.Name, append(hash, name[dot:]...))) == name
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

// maxName is the length of the longest name that kube-apiserver accepts (validation
// NameIsDNSSubdomain).
const maxName = validation.DNS1123SubdomainMaxLength

func eventName(object string, suffix []byte) string {
	return string(appendEventName(make([]byte, 0, maxName+1), object, suffix))
}

// appendEventName appends the name of an Event to a buffer, which is empty: the name of an
// object and a suffix.
//
// kube-apiserver requires a DNS-1123 subdomain. The name of an object need not be one:
// `system:discovery` is a valid name of a ClusterRole. appendEventName replaces what is not
// permitted; the suffix distinguishes different objects.
func appendEventName(to []byte, object string, suffix []byte) []byte {
	to = appendSubdomain(to, object)
	if room := maxName - len(suffix) - 1; len(to) > room {
		to = bytes.TrimRight(to[:room], ".-")
	}
	if len(to) > 0 {
		to = append(to, '.')
	}
	return append(to, suffix...)
}

// Subdomain returns the DNS-1123 subdomain that is most similar to s, as in the names of
// Events. It replaces other characters by '-', and removes those that no label can begin
// or end with. The result can be empty, or longer than the API server accepts.
func Subdomain(s string) string { return string(appendSubdomain(nil, s)) }

// appendSubdomain appends [Subdomain] of s to a buffer.
func appendSubdomain(to []byte, s string) []byte {
	mapped := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, s)
	begin := len(to)
	for label := range strings.SplitSeq(mapped, ".") {
		if label = strings.Trim(label, "-"); label == "" {
			continue
		}
		if len(to) > begin {
			to = append(to, '.')
		}
		to = append(to, label...)
	}
	return to
}
