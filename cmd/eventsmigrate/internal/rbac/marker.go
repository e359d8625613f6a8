// Package rbac moves permissions for events to the group events.k8s.io: in the markers of
// kubebuilder and in YAML. It changes only rules that grant writing: rules for reading
// stay.
package rbac

import (
	"regexp"
	"slices"
	"strings"
)

// Group is the API group of the new recorder.
const Group = "events.k8s.io"

// Needs are the groups in which a program writes events. The zero value changes nothing.
type Needs struct {
	Core bool // leader election, or recorders and broadcasters that stay
	New  bool
}

var markerPrefix = regexp.MustCompile(`^(//\s*\+kubebuilder:rbac:)(.*)$`)

// rule is a marker.
type rule struct {
	prefix string
	args   []arg
}

type arg struct{ key, value string }

// parseMarker parses a comment. It returns false if the comment is no marker.
func parseMarker(text string) (rule, bool) {
	m := markerPrefix.FindStringSubmatch(strings.TrimRight(text, " \t\r"))
	if m == nil {
		return rule{}, false
	}
	r := rule{prefix: m[1]}
	for _, part := range split(m[2], ',') {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return rule{}, false
		}
		r.args = append(r.args, arg{strings.TrimSpace(key), strings.TrimSpace(value)})
	}
	return r, len(r.args) > 0
}

// split splits at separators outside of quotes and braces.
func split(s string, sep byte) (parts []string) {
	depth, quoted, start := 0, byte(0), 0
	for i := range len(s) {
		switch c := s[i]; {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '`' || c == '\'':
			quoted = c
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == sep && depth == 0:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// list returns the items of an argument.
func (r rule) list(key string) (items []string) {
	for _, a := range r.args {
		if a.key != key {
			continue
		}
		value, sep := a.value, byte(';')
		if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
			value, sep = value[1:len(value)-1], ','
		}
		// "a;b" in quotes is a list, too.
		if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' && strings.Count(value, `"`) == 2 {
			value = value[1 : len(value)-1]
			if value == "" {
				return []string{""}
			}
		}
		for _, item := range split(value, sep) {
			items = append(items, strings.Trim(strings.TrimSpace(item), "\"`'"))
		}
	}
	return items
}

// with returns the rule with another list.
func (r rule) with(key string, items []string) rule {
	quoted := make([]string, len(items))
	for i, item := range items {
		if item == "" || item == "*" && key == "groups" {
			item = `"` + item + `"`
		}
		quoted[i] = item
	}
	r.args = slices.Clone(r.args)
	for i, a := range r.args {
		if a.key == key {
			r.args[i].value = strings.Join(quoted, ";")
		}
	}
	return r
}

func (r rule) without(key string) rule {
	r.args = slices.DeleteFunc(slices.Clone(r.args), func(a arg) bool { return a.key == key })
	return r
}

func (r rule) String() string {
	parts := make([]string, len(r.args))
	for i, a := range r.args {
		parts[i] = a.key + "=" + a.value
	}
	return r.prefix + strings.Join(parts, ",")
}

// scope returns the arguments that do not say what the rule grants: the namespace, and
// the name of the role.
func (r rule) scope() string {
	for _, key := range []string{"groups", "resources", "verbs", "resourceNames", "urls"} {
		r = r.without(key)
	}
	r.prefix = ""
	return r.String()
}

func isCore(group string) bool { return group == "" || group == "core" }

// Has reports whether a list contains one of several items.
func Has(list []string, items ...string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(items, s) })
}

func except(list []string, drop func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), drop)
}

// Writes reports whether verbs grant writing.
func Writes(verbs []string) bool { return Has(verbs, "create", "update", "patch", "*") }

// complete returns the verbs with create and patch.
func complete(verbs []string) []string {
	if Has(verbs, "*") {
		return verbs
	}
	for _, v := range []string{"create", "patch"} {
		if !Has(verbs, v) {
			verbs = append(slices.Clip(verbs), v)
		}
	}
	return verbs
}

// Markers returns the comments that replace those of a file, by index. Each comment is a
// line.
func Markers(comments []string, needs Needs) map[int][]string {
	if needs == (Needs{}) {
		return nil
	}
	rules := map[int]rule{}
	granted := map[string]bool{} // by scope
	for i, text := range comments {
		r, ok := parseMarker(text)
		if !ok || !Has(r.list("resources"), "events", "*") || !Writes(r.list("verbs")) {
			continue
		}
		rules[i] = r
		if Has(r.list("groups"), Group, "*") {
			granted[r.scope()] = true
		}
	}
	changed := map[int][]string{}
	for i := range comments {
		r, ok := rules[i]
		if !ok {
			continue
		}
		lines := r.move(needs, granted)
		if len(lines) != 1 || lines[0] != strings.TrimRight(comments[i], " \t\r") {
			changed[i] = lines
		}
	}
	return changed
}

// move returns the markers that replace one that grants writing events.
func (r rule) move(needs Needs, granted map[string]bool) (lines []string) {
	groups, resources, verbs := r.list("groups"), r.list("resources"), r.list("verbs")
	scope := r.scope()
	if Has(groups, Group, "*") {
		if Has(resources, "*") || slices.Equal(complete(verbs), verbs) || !needs.New && !slices.ContainsFunc(groups, isCore) {
			return []string{r.String()}
		}
		return []string{r.with("verbs", complete(verbs)).String()}
	}
	if !slices.ContainsFunc(groups, isCore) {
		return []string{r.String()}
	}
	others := except(resources, func(s string) bool { return s == "events" })
	otherGroups := except(groups, isCore)
	add := needs.New && !granted[scope]
	single := r.without("resourceNames").with("resources", []string{"events"})
	fresh := single.with("groups", []string{Group}).with("verbs", []string{"create", "patch"}).String()
	core := except(groups, func(g string) bool { return !isCore(g) })
	read := Has(verbs, "get", "list", "watch", "*")
	keep := needs.Core || read || !needs.New
	switch {
	case Has(resources, "*"):
		lines = []string{r.String()}
	case len(others) == 0 && len(otherGroups) == 0:
		if keep {
			kept := r
			if !slices.Equal(complete(verbs), verbs) {
				kept = r.with("verbs", complete(verbs))
			}
			lines = []string{kept.String()}
		}
	case !add && keep && slices.Equal(complete(verbs), verbs):
		lines = []string{r.String()} // nothing to split for
	default:
		if len(others) > 0 {
			lines = []string{r.with("resources", others).String()}
		}
		if keep {
			lines = append(lines, single.with("groups", core[:1]).with("verbs", complete(verbs)).String())
		}
	}
	if add {
		granted[scope] = true
		lines = append(lines, fresh)
	}
	return lines
}
