package sanitize

import (
	"fmt"
	"hash/fnv"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/eventseries/eventseries/internal/eventtext"
)

// Identity says who emits. Its fields are those of Events.
type Identity struct {
	// Controller is the reportingController.
	Controller string
	// Instance is the reportingInstance.
	Instance string
}

// Repair is a name that had to be changed.
type Repair struct {
	// Field is the field of the Event.
	Field string
	// Given is the beginning of the name that the program chose.
	Given string
	// Used is the name that replaces it.
	Used string
}

// NewIdentity returns the identity with the names of the program, as far as the API server
// accepts them. An empty instance stands for the names of the controller and of the host.
// repairs are the changes.
func NewIdentity(controller, instance string) (id Identity, repairs []Repair) {
	repair := func(field, given, used string) string {
		if used != given {
			repairs = append(repairs, Repair{field, eventtext.Cut(given, maxText), used})
		}
		return used
	}
	id.Controller = repair("reportingController", controller, qualifiedName(controller))
	if instance == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = unnamed
		}
		instance = id.Controller + "-" + host
	}
	id.Instance = repair("reportingInstance", instance, shorten(strings.ToValidUTF8(instance, "-"), maxText))
	return id, repairs
}

// notInName matches the characters that the name of a reporting controller cannot have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// qualifiedName returns s if kube-apiserver accepts it as the name of a reporting
// controller, and otherwise a similar name: one of at most 63 bytes, with a DNS subdomain
// before it if there is a slash.
func qualifiedName(s string) string {
	if len(validation.IsQualifiedName(s)) == 0 {
		return s
	}
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		prefix, name = "", s
	}
	name = trimPunctuation(notInName.ReplaceAllLiteralString(name, "-"))
	name = trimPunctuation(shorten(name, validation.LabelValueMaxLength))
	if name == "" {
		name = strings.ToLower(unnamed)
	}
	prefix = trimPunctuation(shorten(string(eventtext.AppendSubdomain(nil, prefix)), validation.DNS1123SubdomainMaxLength))
	if prefix == "" {
		return name
	}
	return prefix + "/" + name
}

// shorten returns s if it has at most limit bytes, and otherwise its beginning and
// a hash of all of it, so that two long names stay different.
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
