package series

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/eventseries/eventseries/internal/eventtext"
)

// Salts is the number of names of a key that a restarted process finds: [Key.Name] of 0 up
// to Salts-1.
const Salts = 3

// Name returns the name of the Event of a key: the name of the regarding object, and a hash
// of the key and of a salt. It is the same in every process, so a restarted recorder finds
// the Event that it wrote before. The salt is zero, unless the Event of another key has that
// name.
func (k *Key) Name(salt int) string {
	return eventName(k.Regarding.Name, k.appendHash(make([]byte, 0, sha256.Size), salt))
}

// UniqueName returns a name for the Event of a key that nothing else has: it contains the
// time of the first occurrence. Another process finds it only by a list.
func (k *Key) UniqueName(first time.Time) string {
	// Unsigned, because a time before 1970 would put a sign into the name.
	suffix := append(k.appendHash(make([]byte, 0, 2*sha256.Size), 0), '.')
	return eventName(k.Regarding.Name, strconv.AppendUint(suffix, uint64(first.UnixNano()), 16))
}

// Salt returns the salt with which [Key.Name] returns name, or [Salts] if name is
// [Key.UniqueName] of first. ok is false for any other name: its Event was not written for
// this key.
func (k *Key) Salt(name string, first time.Time) (salt int, ok bool) {
	for salt := range Salts {
		if k.Name(salt) == name {
			return salt, true
		}
	}
	return Salts, k.UniqueName(first) == name
}

// appendHash appends the hash of k and a salt in hexadecimal digits.
func (k *Key) appendHash(to []byte, salt int) []byte {
	return hex.AppendEncode(to, binary.BigEndian.AppendUint64(nil, k.hash(salt)))
}

// maxName is the length of the longest name that kube-apiserver accepts (NameIsDNSSubdomain).
const maxName = validation.DNS1123SubdomainMaxLength

// eventName returns the name of an Event: the name of an object and a suffix, which distinguishes different
// objects. kube-apiserver requires a DNS-1123 subdomain, so eventName replaces what is not permitted:
// `system:discovery` is a valid name of a ClusterRole.
func eventName(object string, suffix []byte) string {
	to := eventtext.AppendSubdomain(make([]byte, 0, maxName+1), object)
	if room := maxName - len(suffix) - 1; len(to) > room {
		to = bytes.TrimRight(to[:room], ".-")
	}
	if len(to) > 0 {
		to = append(to, '.')
	}
	return string(append(to, suffix...))
}
