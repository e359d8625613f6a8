package series

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// hashDigits is the length of a key's hash in a name.
const hashDigits = 16

// BaseName returns the name that the Event of a key has where nothing stands in
// the way: the name of the regarding object and the hash of the key. It is the
// same in every process, so that a recorder which is started again meets the
// Event that it wrote before.
func (k *Key) BaseName() string {
	return eventName(k.Regarding.Name, k.hashSuffix())
}

// UniqueName returns a name for the Event of a key whose base name is taken. It
// differs from that by the time of the first occurrence, and n tells names
// apart that begin at the same time.
func (k *Key) UniqueName(first time.Time, n int) string {
	// Unsigned, since a time before 1970 would bring a sign into the name.
	return eventName(k.Regarding.Name, fmt.Sprintf("%s.%x", k.hashSuffix(), uint64(first.UnixNano())+uint64(n)))
}

// Named reports whether name is one that BaseName or UniqueName could have
// given to the Event of k: whether it carries the hash of the key. An Event
// whose name does not was not written for this key by this project.
func (k *Key) Named(name string) bool {
	base := k.BaseName()
	if name == base {
		return true
	}
	// A long object name is cut shorter in a unique name than in the base name,
	// so compare with a unique name of the same time.
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || len(name)-dot-1 > hashDigits || !isHex(name[dot+1:]) {
		return false
	}
	return name == eventName(k.Regarding.Name, k.hashSuffix()+name[dot:])
}

func (k *Key) hashSuffix() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, k.Hash()))
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
// kube-apiserver wants a DNS-1123 subdomain of at most 253 bytes (validation
// NameIsDNSSubdomain), and an object's name need not be one: `system:discovery`
// is a fine name for a ClusterRole. What does not fit is replaced; the suffix
// keeps the names of different objects apart.
func eventName(object, suffix string) string {
	room := validation.DNS1123SubdomainMaxLength - len(suffix) - 1
	name := subdomain(object)
	if len(name) > room {
		name = strings.TrimRight(name[:room], ".-")
	}
	if name == "" {
		return suffix
	}
	return name + "." + suffix
}

// subdomain returns s with all that a DNS-1123 subdomain does not allow turned
// into '-', and without what may not stand at the ends of its labels.
func subdomain(s string) string {
	mapped := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, s)
	labels := strings.Split(mapped, ".")
	kept := labels[:0]
	for _, label := range labels {
		if label = strings.Trim(label, "-"); label != "" {
			kept = append(kept, label)
		}
	}
	return strings.Join(kept, ".")
}
