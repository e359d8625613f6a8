// Package rbac finds the permissions that a program lacks for its events: in the markers of
// kubebuilder and in YAML, templates of Helm included. It looks only at rules that grant
// writing events: rules for reading are those of somebody else.
package rbac

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Group is the API group of structured recorders.
const Group = "events.k8s.io"

// Finding is a rule that lacks something, and what to add.
type Finding struct {
	Index int // of the comment, or of the line
	Text  string
}

const (
	noGroup = "the program writes events of the group " + Group + ", too; add:\n"
	noPatch = "a series needs patch; change the rule to:\n"
)

// rule grants verbs.
type rule struct {
	index                    int
	groups, resources, verbs []string
	scope                    string // what the rule shares with those that can complete it
	named                    bool   // it is limited to names

	// text returns the rule with other lists, in the style of the file.
	text func(groups, resources, verbs []string) string
}

// missing returns what rules lack. Group reports whether the program writes to [Group].
func missing(rules []rule, group bool) (list []Finding) {
	granted := map[string]bool{}
	writers := slices.DeleteFunc(rules, func(r rule) bool {
		return r.named || !Has(r.resources, "events", "*") || !Writes(r.verbs) || !Has(r.groups, "", "core", Group, "*")
	})
	for _, r := range writers {
		if Has(r.groups, Group, "*") {
			granted[r.scope] = true
		}
	}
	for _, r := range writers {
		if verbs := complete(r.verbs); !slices.Equal(verbs, r.verbs) {
			list = append(list, Finding{r.index, noPatch + r.text(r.groups, r.resources, verbs)})
		}
		if group && !granted[r.scope] {
			granted[r.scope] = true
			list = append(list, Finding{r.index, noGroup + r.text([]string{Group}, []string{"events"}, []string{"create", "patch"})})
		}
	}
	return list
}

// Has reports whether a list contains one of several items.
func Has(list []string, items ...string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(items, s) })
}

// Writes reports whether verbs grant writing.
func Writes(verbs []string) bool { return Has(verbs, "create", "update", "patch", "*") }

// complete returns the verbs with create and patch.
func complete(verbs []string) []string {
	for _, v := range []string{"create", "patch"} {
		if !Has(verbs, v, "*") {
			verbs = append(slices.Clip(verbs), v)
		}
	}
	return verbs
}

var marker = regexp.MustCompile(`^(//\s*\+kubebuilder:rbac:)(.*)$`)

// Markers returns what the markers among the comments of a file lack. Each comment is a
// line.
func Markers(comments []string, group bool) []Finding {
	var rules []rule
	for i, text := range comments {
		m := marker.FindStringSubmatch(strings.TrimRight(text, " \t\r"))
		if m == nil {
			continue
		}
		args, rest := map[string][]string{}, []string(nil)
		for _, part := range split(m[2], ',') {
			key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			if Has([]string{"groups", "resources", "verbs", "resourceNames"}, key) {
				args[key] = items(value)
			} else {
				rest = append(rest, part)
			}
		}
		text := func(groups, resources, verbs []string) string {
			lists := []string{"groups=" + join(groups), "resources=" + join(resources), "verbs=" + join(verbs)}
			return m[1] + strings.Join(append(lists, rest...), ",")
		}
		rules = append(rules, rule{i, args["groups"], args["resources"], args["verbs"], strings.Join(rest, ","), args["resourceNames"] != nil, text})
	}
	return missing(rules, group)
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

// items returns the items of an argument: a;b, {a,b}, or "a;b".
func items(value string) (list []string) {
	sep := byte(';')
	if inner, ok := strings.CutPrefix(value, "{"); ok {
		value, sep = strings.TrimSuffix(inner, "}"), ','
	}
	if len(value) > 2 && value[0] == '"' && strings.Count(value, `"`) == 2 {
		value = strings.Trim(value, `"`)
	}
	for _, item := range split(value, sep) {
		list = append(list, strings.Trim(strings.TrimSpace(item), "\"`'"))
	}
	return list
}

// join returns an argument with items.
func join(list []string) string {
	quoted := slices.Clone(list)
	for i, item := range list {
		if item == "" || item == "*" {
			quoted[i] = `"` + item + `"`
		}
	}
	return strings.Join(quoted, ";")
}

var (
	action   = regexp.MustCompile(`\{\{.*?\}\}`)
	ruleItem = regexp.MustCompile(`(?m)^ *- +(apiGroups|resources|resourceNames|verbs):`)
	document = regexp.MustCompile(`(?m)^---.*$`)
)

// YAML returns what the rules in a manifest or in a template lack. A rule is a mapping with
// the keys of one, wherever it is.
func YAML(src []byte, group bool) []Finding {
	if !bytes.Contains(src, []byte("verbs")) {
		return nil
	}
	f := &file{}
	for line := range strings.Lines(strings.ReplaceAll(string(src), "\r\n", "\n")) {
		bare := action.ReplaceAllString(line, "")
		if trimmed := strings.TrimSpace(bare); bare != line && (trimmed == "" || trimmed[0] == '#') {
			line = "\n" // an action of a template
		}
		f.lines = append(f.lines, action.ReplaceAllString(line, "x"))
	}
	all := strings.Join(f.lines, "")
	start := 0
	for _, at := range append(document.FindAllStringIndex(all, -1), []int{len(all), len(all)}) {
		f.read(all, start, at[0])
		start = at[1]
	}
	return missing(f.rules, group)
}

// file is a manifest without the actions of templates.
type file struct {
	lines []string
	rules []rule
}

// read reads a part of the text: a document, or the items of lists that begin like rules, if
// the document is no valid YAML.
func (f *file) read(all string, from, to int) {
	line := strings.Count(all[:from], "\n")
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(all[from:to]), &doc); err == nil {
		f.visit(line, nil, &doc)
		return
	}
	for _, at := range ruleItem.FindAllStringIndex(all[from:to], -1) {
		end := from + at[0]
		depth := indent(all[end:])
		for next := range strings.Lines(all[end:to]) {
			if strings.TrimSpace(next) != "" && end > from+at[0] && indent(next) <= depth {
				break
			}
			end += len(next)
		}
		var item yaml.Node
		if yaml.Unmarshal([]byte(all[from+at[0]:end]), &item) == nil {
			f.visit(strings.Count(all[:from+at[0]], "\n"), nil, &item)
		}
	}
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// visit finds the rules below a node that begins after a number of lines.
func (f *file) visit(line int, parent, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		if strings.Contains(name(n), "leader-election") {
			return // a role of its own
		}
		if r, ok := f.rule(line, n); ok {
			r.scope = fmt.Sprintf("%p", parent)
			f.rules = append(f.rules, r)
			return
		}
	}
	for _, c := range n.Content {
		f.visit(line, n, c)
	}
}

// get returns the value of a key, also if it is an alias or merged.
func get(n *yaml.Node, key string) *yaml.Node {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	if key != "<<" {
		if merged := get(n, "<<"); merged != nil {
			return get(merged, key)
		}
	}
	return nil
}

func name(n *yaml.Node) string {
	if n := get(get(n, "metadata"), "name"); n != nil {
		return n.Value
	}
	return ""
}

// rule returns the rule that a mapping is. The rules of a FlowSchema, for example, have
// other keys.
func (f *file) rule(line int, n *yaml.Node) (rule, bool) {
	for i := 0; i < len(n.Content); i += 2 {
		if !Has([]string{"apiGroups", "resources", "verbs", "resourceNames", "nonResourceURLs", "<<"}, n.Content[i].Value) {
			return rule{}, false
		}
	}
	groups, resources, verbs := get(n, "apiGroups"), get(n, "resources"), get(n, "verbs")
	if groups == nil || resources == nil || verbs == nil {
		return rule{}, false
	}
	row := f.lines[line+n.Line-1]
	s := form{before: row[:min(max(n.Column-1, 0), len(row))], flow: resources.Style&yaml.FlowStyle != 0}
	if n.Style&yaml.FlowStyle != 0 {
		s = form{before: strings.Repeat(" ", indent(row)) + "- ", one: true}
	}
	if resources.Kind == yaml.SequenceNode && len(resources.Content) > 0 {
		for _, c := range append(slices.Clone(resources.Content), verbs.Content...) {
			switch {
			case s.quote != "":
			case c.Style&yaml.DoubleQuotedStyle != 0:
				s.quote = `"`
			case c.Style&yaml.SingleQuotedStyle != 0:
				s.quote = "'"
			}
		}
		if first := resources.Content[0]; !s.flow && !s.one {
			s.inner = strings.Repeat(" ", max(0, first.Column-2-n.Column))
		}
	}
	return rule{
		index: line + n.Line, groups: values(groups), resources: values(resources), verbs: values(verbs), named: get(n, "resourceNames") != nil, text: s.rule,
	}, true
}

func values(n *yaml.Node) (list []string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	for _, c := range n.Content {
		if c.Kind == yaml.AliasNode {
			c = c.Alias
		}
		list = append(list, c.Value)
	}
	return list
}

// form is how a file writes rules.
type form struct {
	before, inner, quote string

	flow bool // the lists are in brackets
	one  bool // the rule is in braces
}

func (f form) rule(groups, resources, verbs []string) string {
	keys := []string{f.list("apiGroups", groups), f.list("resources", resources), f.list("verbs", verbs)}
	if f.one {
		return f.before + "{" + strings.Join(keys, ", ") + "}"
	}
	return f.before + strings.Join(keys, "\n"+strings.Repeat(" ", len(f.before)))
}

func (f form) list(key string, items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		q := f.quote
		if q == "" && (item == "" || item == "*") {
			q = `"`
		}
		quoted[i] = q + item + q
	}
	if f.flow || f.one {
		return key + ": [" + strings.Join(quoted, ", ") + "]"
	}
	sep := "\n" + strings.Repeat(" ", len(f.before)) + f.inner + "- "
	return key + ":" + sep + strings.Join(quoted, sep)
}
