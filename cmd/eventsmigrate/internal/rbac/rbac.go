// Package rbac finds the permissions that a program lacks for its events: in the markers of
// kubebuilder and in YAML, templates of Helm included. It looks only at rules that grant
// writing events: rules for reading are those of somebody else.
package rbac

import (
	"bytes"
	"cmp"
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

// missing returns what rules lack. Those of a scope complete each other. Group reports whether the
// program writes to [Group].
func missing(rules []rule, group bool) (list []Finding) {
	granted := map[string][]string{} // the verbs for a group, by scope
	writers := slices.DeleteFunc(rules, func(r rule) bool {
		return r.named || !Has(r.resources, "events", "*") || !Writes(r.verbs) || !Has(r.groups, "", "core", Group, "*")
	})
	all := []string{"create", "patch"}
	of := func(r rule, group string) string { return group + " " + r.scope }
	grants := func(r rule) (groups []string) {
		for _, g := range []string{"core", Group} {
			if Has(r.groups, g, "*") || g == "core" && Has(r.groups, "") {
				groups = append(groups, of(r, g))
			}
		}
		return groups
	}
	for _, r := range writers {
		for _, g := range grants(r) {
			granted[g] = append(granted[g], r.verbs...)
		}
	}
	for _, r := range writers {
		for _, g := range grants(r) {
			if !slices.Equal(complete(granted[g]), granted[g]) {
				list = append(list, Finding{r.index, noPatch + r.text(r.groups, r.resources, complete(r.verbs))})
				granted[g] = all // with this rule
			}
		}
		if group && granted[of(r, Group)] == nil {
			granted[of(r, Group)] = all
			list = append(list, Finding{r.index, noGroup + r.text([]string{Group}, []string{"events"}, all)})
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

var (
	marker   = regexp.MustCompile(`^(//\s*\+kubebuilder:rbac:)(.*)$`)
	argument = regexp.MustCompile(`\b(groups|resources|verbs|resourceNames)=(\{[^}]*\}|(?:"[^"]*"|[^,"])*)`)
)

// Markers returns what the markers among the comments of a program lack. Each comment is a
// line.
func Markers(comments []string, group bool) []Finding {
	var rules []rule
	for i, text := range comments {
		m := marker.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil {
			continue
		}
		args := map[string][]string{}
		for _, a := range argument.FindAllStringSubmatch(m[2], -1) {
			args[a[1]] = items(a[2])
		}
		rest := strings.FieldsFunc(argument.ReplaceAllString(m[2], ""), func(r rune) bool { return r == ',' })
		text := func(groups, resources, verbs []string) string {
			lists := []string{"groups=" + join(groups), "resources=" + join(resources), "verbs=" + join(verbs)}
			return m[1] + strings.Join(append(lists, rest...), ",")
		}
		rules = append(rules, rule{i, args["groups"], args["resources"], args["verbs"], strings.Join(rest, ","), args["resourceNames"] != nil, text})
	}
	return missing(rules, group)
}

// items returns the items of an argument: a;b, {a,b}, or "a;b".
func items(value string) (list []string) {
	for item := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune("{;,}", r) }) {
		list = append(list, strings.Trim(item, " \"'`"))
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

const templateAction = `\{\{(?:[^}]|\}[^}])*\}\}`

var (
	action   = regexp.MustCompile(templateAction)
	alone    = regexp.MustCompile(`(?m)^[ \t]*(?:` + templateAction + `[ \t]*)+$`)
	document = regexp.MustCompile(`(?m)^---.*$`)
	events   = regexp.MustCompile(`(?m)^[^#]*\bevents\b`)
)

const noYAML = "the file is no valid YAML: check whether its rules for events grant create and patch"

// YAML returns what the rules in a manifest or in a template lack. A rule is a mapping with
// the keys of one, wherever it is.
func YAML(src []byte, group bool) (list []Finding) {
	if !bytes.Contains(src, []byte("verbs")) {
		return nil
	}
	lines := func(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }
	all := alone.ReplaceAllStringFunc(strings.ReplaceAll(string(src), "\r\n", "\n"), lines)
	all = action.ReplaceAllStringFunc(all, func(a string) string { return "x" + lines(a) })
	f := &file{lines: strings.Split(all, "\n")}
	start := 0
	for _, at := range append(document.FindAllStringIndex(all, -1), []int{len(all), len(all)}) {
		text := all[start:at[0]]
		f.line, start = strings.Count(all[:start], "\n"), at[1]
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(text), &doc); err == nil {
			f.visit(nil, &doc)
		} else if strings.Contains(text, "verbs") && events.MatchString(text) {
			list = append(list, Finding{f.line + 1, noYAML})
		}
	}
	return append(list, missing(f.rules, group)...)
}

// file is a manifest without the actions of templates.
type file struct {
	lines []string
	line  int // before the document
	rules []rule
}

var leaderElection = regexp.MustCompile(`leader-?election`)

// visit finds the rules below a node.
func (f *file) visit(parent, n *yaml.Node) {
	if name := value(value(n, "metadata"), "name"); name != nil && leaderElection.MatchString(name.Value) {
		return // a role of its own
	}
	if n.Kind == yaml.MappingNode && f.rule(parent, n) || n.Kind == yaml.SequenceNode && locks(n) {
		return
	}
	for _, c := range n.Content {
		f.visit(n, c)
	}
}

// locks reports whether rules are those of leader election, which has events of its own: they
// grant leases and, apart from events, no objects that are not locks. The roles of a
// ClusterServiceVersion have no names.
func locks(n *yaml.Node) bool {
	var rules []lists
	var all []string
	_ = n.Decode(&rules) // other lists have no leases
	for _, r := range rules {
		all = append(all, r.Resources...)
	}
	other := func(r string) bool { return !Has([]string{r}, "leases", "configmaps", "endpoints", "events") }
	return Has(all, "leases") && !slices.ContainsFunc(all, other)
}

// value returns the value of a key of a mapping, or nil.
func value(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// lists are the keys of a rule. The rules of a FlowSchema, for example, have others.
type lists struct {
	Groups    []string       `yaml:"apiGroups"`
	Resources []string       `yaml:"resources"`
	Verbs     []string       `yaml:"verbs"`
	Names     []string       `yaml:"resourceNames,omitempty"`
	URLs      []string       `yaml:"nonResourceURLs,omitempty"`
	Others    map[string]any `yaml:",inline"`
}

// rule adds the rule that a mapping is.
func (f *file) rule(parent, n *yaml.Node) bool {
	var l lists
	if n.Decode(&l) != nil || len(l.Others) > 0 || l.Resources == nil || l.Verbs == nil {
		return false
	}
	row := f.lines[f.line+n.Line-1]
	indent := row[:len(row)-len(strings.TrimLeft(row, " "))]
	f.rules = append(f.rules, rule{
		index: f.line + n.Line, groups: l.Groups, resources: l.Resources, verbs: l.Verbs, scope: fmt.Sprintf("%p", parent), named: l.Names != nil,
		text: func(groups, resources, verbs []string) string {
			return indent + strings.ReplaceAll(like(n, parent, lists{Groups: groups, Resources: resources, Verbs: verbs}), "\n", "\n"+indent)
		},
	})
	return true
}

// like returns a rule in the style of another one.
func like(other, parent *yaml.Node, l lists) string {
	var n yaml.Node
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	_ = n.Encode(l) // lists of strings have a form in YAML
	n.Style = other.Style
	model := value(other, "resources")
	for i := 1; i < len(n.Content); i += 2 {
		list := n.Content[i]
		list.Style = yaml.FlowStyle
		if model == nil || len(model.Content) == 0 {
			continue
		}
		list.Style = model.Style
		for _, item := range list.Content {
			item.Style = cmp.Or(model.Content[0].Style, item.Style)
		}
		if model.Content[0].Column == other.Column+len("- ") {
			e.CompactSeqIndent()
		}
	}
	if parent.Kind == yaml.SequenceNode {
		n = yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: n.Kind, Style: n.Style, Content: n.Content}}}
	}
	_ = e.Encode(&n)
	return strings.TrimSuffix(b.String(), "\n")
}
