package events

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// identity is who emits: the controller and the process, as they go on the wire.
type identity struct {
	controller, instance string
}

// repair is what had to be changed of a name.
type repair struct {
	field       string // of the Event
	given, used string
}

// newIdentity makes an identity that the API server takes, of whatever the
// program calls itself. repairs says what had to be changed for it.
func newIdentity(controller, instance string) (id identity, repairs []repair) {
	id.controller = qualifiedName(controller)
	if id.controller != controller {
		repairs = append(repairs, repair{"reportingController", controller, id.controller})
	}
	if instance == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = unnamed
		}
		instance = id.controller + "-" + host
	}
	id.instance = shorten(strings.ToValidUTF8(instance, "-"), maxInstance)
	if id.instance != instance {
		repairs = append(repairs, repair{"reportingInstance", instance, id.instance})
	}
	return id, repairs
}

// qualifiedName returns s if kube-apiserver takes it as the name of a reporting
// controller (IsQualifiedName: a name of at most 63 bytes, with a DNS subdomain
// before it if there is a slash), and the most similar name that it does take
// otherwise.
func qualifiedName(s string) string {
	if len(validation.IsQualifiedName(s)) == 0 {
		return s
	}
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		prefix, name = "", s
	}
	name = strings.Map(func(r rune) rune {
		if isAlphanumeric(r) || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, name)
	name = trimPunctuation(shorten(trimPunctuation(name), validation.LabelValueMaxLength))
	if name == "" {
		name = strings.ToLower(unnamed)
	}
	prefix = strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r - 'A' + 'a'
		}
		if isAlphanumeric(r) || r == '.' {
			return r
		}
		return '-'
	}, prefix)
	var labels []string
	for label := range strings.SplitSeq(prefix, ".") {
		if label = strings.Trim(label, "-"); label != "" {
			labels = append(labels, label)
		}
	}
	prefix = trimPunctuation(shorten(strings.Join(labels, "."), validation.DNS1123SubdomainMaxLength))
	if prefix == "" {
		return name
	}
	return prefix + "/" + name
}

// shorten returns s if it has at most limit bytes, and otherwise its beginning
// and a hash of all of it, so that two long names stay two.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	h := fnv.New32a()
	h.Write([]byte(s)) // never fails
	sum := fmt.Sprintf("-%08x", h.Sum32())
	end := limit - len(sum)
	return trimPunctuation(strings.ToValidUTF8(s[:end], "")) + sum
}

func trimPunctuation(s string) string { return strings.Trim(s, "-_.") }

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
