package rbac

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Finding is a place in a YAML file.
type Finding struct {
	Line    int
	Text    string
	Changed bool
}

// YAML returns a file with the permissions that a program needs, and what it found: rules
// for the new group, and the verb patch in rules for events. It does not change templates,
// which it reports.
func YAML(src []byte, needs Needs) (out []byte, findings []Finding) {
	if !mentionsEvents(src) || needs == (Needs{}) {
		return src, nil
	}
	if bytes.Contains(src, []byte("{{")) {
		return src, template(src, needs)
	}
	e, err := scan(src, needs)
	if err != nil {
		return src, []Finding{{Line: 1, Text: fmt.Sprintf("the file is not valid YAML: %v", err)}}
	}
	lines, newline := e.lines, "\n"
	if bytes.Contains(src, []byte("\r\n")) {
		newline = "\r\n"
	}
	slices.SortStableFunc(e.inserts, func(a, b insert) int { return cmp.Or(b.line-a.line, b.column-a.column) })
	for _, i := range e.inserts {
		i.text = strings.ReplaceAll(i.text, "\n", newline)
		if i.column > 0 {
			line := lines[i.line-1]
			at := i.column - 1
			lines[i.line-1] = slices.Concat(line[:at], []byte(i.text), line[at:])
		} else {
			if n := len(lines[i.line-1]); n > 0 && lines[i.line-1][n-1] != '\n' {
				lines[i.line-1] = slices.Concat(lines[i.line-1], []byte(newline))
			}
			lines[i.line-1] = slices.Concat(lines[i.line-1], []byte(i.text))
		}
		findings = append(findings, Finding{Line: i.line, Text: i.note, Changed: true})
	}
	slices.Reverse(findings)
	out = bytes.Join(lines, nil)
	// A result must be valid, and another run must not change it.
	if again, err := scan(out, needs); len(findings) > 0 && (err != nil || len(again.inserts) > 0) {
		what := byHand
		if !needs.New {
			what = "add patch to the rule for events"
		}
		for i := range findings {
			findings[i] = Finding{Line: findings[i].Line, Text: "the form of the file is unusual: " + what}
		}
		out = src
	}
	findings = append(findings, e.reports...)
	slices.SortStableFunc(findings, func(a, b Finding) int { return a.Line - b.Line })
	return out, findings
}

const byHand = "add a rule for events in the group " + Group + " with create and patch"

// scan finds what to insert in a file.
func scan(src []byte, needs Needs) (*editor, error) {
	e := &editor{needs: needs, lines: bytes.SplitAfter(src, []byte("\n"))}
	d := yaml.NewDecoder(bytes.NewReader(src))
	for {
		var doc yaml.Node
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return e, nil
		} else if err != nil {
			return nil, err
		}
		if !strings.Contains(nameOf(&doc), "leader-election") {
			e.visit("", &doc)
		}
	}
}

// insert is text behind a line, or before a column.
type insert struct {
	line, column int
	text, note   string
}

func mentionsEvents(src []byte) bool {
	return (bytes.Contains(src, []byte("events")) || bytes.Contains(src, []byte("*"))) && bytes.Contains(src, []byte("apiGroups")) && bytes.Contains(src, []byte("verbs"))
}

// template reports the rules of a template that grant writing core events, unless the file
// grants the new group, too.
func template(src []byte, needs Needs) []Finding {
	if !needs.New || bytes.Contains(src, []byte(Group)) {
		return nil
	}
	for i, line := range strings.Split(string(src), "\n") {
		if word := strings.Trim(strings.TrimSpace(line), `-"'[] `); word == "events" || strings.Contains(line, "resources:") && strings.Contains(line, "events") {
			return []Finding{{Line: i + 1, Text: "the file is a template: " + byHand}}
		}
	}
	return nil
}

func nameOf(doc *yaml.Node) string {
	if len(doc.Content) == 0 {
		return ""
	}
	if m := get(doc.Content[0], "metadata"); m != nil {
		if n := get(m, "name"); n != nil {
			return n.Value
		}
	}
	return ""
}

// resolve returns the node of an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func get(n *yaml.Node, key string) *yaml.Node {
	if n = resolve(n); n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "<<" {
			return get(n.Content[i+1], key)
		}
	}
	return nil
}

func values(n *yaml.Node) (list []string) {
	if n = resolve(n); n != nil && n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			list = append(list, resolve(c).Value)
		}
	}
	return list
}

// isRule reports whether a node is a rule of RBAC: the rules of a FlowSchema, for example,
// have other keys.
func isRule(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode || get(n, "apiGroups") == nil || get(n, "resources") == nil || get(n, "verbs") == nil {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if !Has([]string{"apiGroups", "resources", "verbs", "resourceNames", "nonResourceURLs", "<<"}, n.Content[i].Value) {
			return false
		}
	}
	return true
}

// editor collects what to insert in a file.
type editor struct {
	needs   Needs
	lines   [][]byte
	inserts []insert
	reports []Finding
}

func (e *editor) report(n *yaml.Node, why string) {
	e.reports = append(e.reports, Finding{Line: n.Line, Text: why + ": " + byHand})
}

// visit finds lists of rules: the values of the key rules.
func (e *editor) visit(key string, n *yaml.Node) {
	switch n.Kind {
	case yaml.SequenceNode:
		if key == "rules" {
			e.rules(n)
			return
		}
		for _, c := range n.Content {
			e.visit("", c)
		}
	case yaml.MappingNode:
		if e.needs.New && isRule(n) && isCoreRule(n) {
			e.report(n, "the rule is not in a list of rules")
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			e.visit(n.Content[i].Value, n.Content[i+1])
		}
	default:
		for _, c := range n.Content {
			e.visit(key, c)
		}
	}
}

// isCoreRule reports whether a rule grants writing events of the core group, but not those
// of the new one.
func isCoreRule(r *yaml.Node) bool {
	groups := values(get(r, "apiGroups"))
	return get(r, "resourceNames") == nil && Has(values(get(r, "resources")), "events", "*") && Writes(values(get(r, "verbs"))) &&
		slices.ContainsFunc(groups, isCore) && !Has(groups, Group, "*")
}

func (e *editor) rules(list *yaml.Node) {
	var core *yaml.Node
	granted := false
	for _, item := range list.Content {
		r := resolve(item)
		if !isRule(r) {
			e.visit("", r) // a list of something else
			continue
		}
		groups, resources, verbs := values(get(r, "apiGroups")), values(get(r, "resources")), values(get(r, "verbs"))
		if get(r, "resourceNames") != nil || !Has(resources, "events", "*") || !Writes(verbs) {
			continue
		}
		newGroup := Has(groups, Group, "*")
		full := slices.Equal(complete(verbs), verbs)
		single := len(resources) == 1 && resources[0] == "events"
		granted = granted || newGroup && (full || single)
		if single && !full && (newGroup && e.needs.New || slices.ContainsFunc(groups, isCore)) {
			e.addVerbs(get(r, "verbs"), complete(verbs)[len(verbs):])
		}
		if core == nil && isCoreRule(r) {
			core = item
		}
	}
	if core == nil || granted || !e.needs.New {
		return
	}
	if core.Kind == yaml.AliasNode {
		e.report(core, "the rule is an alias")
		return
	}
	lines := e.lines
	if list.Style&yaml.FlowStyle != 0 || core.Style&yaml.FlowStyle != 0 {
		e.report(core, "the rule is in flow style")
		return
	}
	dash := dashOf(core, lines)
	if dash < 0 || get(core, "<<") != nil {
		e.report(core, "the form of the rule is unusual")
		return
	}
	indent := strings.Repeat(" ", dash)
	pad := strings.Repeat(" ", core.Column-1)
	var b strings.Builder
	write := func(key string, items ...string) {
		seq := get(core, key)
		if seq.Style&yaml.FlowStyle != 0 || seq.Kind == yaml.AliasNode || len(seq.Content) == 0 {
			quoted := make([]string, len(items))
			for i, item := range items {
				quoted[i] = quoteAs(seq, item)
			}
			fmt.Fprintf(&b, "%s: [%s]\n", key, strings.Join(quoted, ", "))
			return
		}
		fmt.Fprintf(&b, "%s:\n", key)
		column := dashOf(seq.Content[0], lines)
		for _, item := range items {
			fmt.Fprintf(&b, "%s- %s\n", strings.Repeat(" ", max(column, 0)), quoteAs(seq, item))
		}
	}
	b.WriteString(indent + "-" + strings.Repeat(" ", core.Column-2-dash))
	for i := 0; i+1 < len(core.Content); i += 2 {
		key := core.Content[i].Value
		if b.Len() > 0 && i > 0 {
			switch key {
			case "apiGroups", "resources", "verbs":
				b.WriteString(pad)
			}
		}
		switch key {
		case "apiGroups":
			write(key, Group)
		case "resources":
			write(key, "events")
		case "verbs":
			write(key, "create", "patch")
		}
	}
	e.inserts = append(e.inserts, insert{line: e.lastLine(core), text: b.String(), note: "a rule for events in the group " + Group})
}

// quoteAs quotes an item like those of a list, of which the first may be the empty group.
func quoteAs(seq *yaml.Node, item string) string {
	for _, c := range seq.Content {
		if c.Value == "" {
			continue
		}
		switch {
		case c.Style&yaml.DoubleQuotedStyle != 0:
			return `"` + item + `"`
		case c.Style&yaml.SingleQuotedStyle != 0:
			return "'" + item + "'"
		}
	}
	return item
}

// dashOf returns the column of the dash before an item, or -1.
func dashOf(item *yaml.Node, lines [][]byte) int {
	line := lines[item.Line-1]
	for i := min(item.Column-2, len(line)-1); i >= 0; i-- {
		switch line[i] {
		case ' ':
		case '-':
			return i
		default:
			return -1
		}
	}
	return -1
}

// lastLine returns the line on which a node ends.
func (e *editor) lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, e.lastLine(c))
	}
	if n.Style&yaml.FlowStyle == 0 || len(n.Content) == 0 {
		return last
	}
	// The closing bracket.
	from := n.Content[len(n.Content)-1].Column - 1
	for i := last - 1; i < len(e.lines); i++ {
		line := string(e.lines[i])
		if from > 0 && from <= len(line) {
			line = line[from:]
		}
		from = 0
		line, _, _ = strings.Cut(line, " #")
		if strings.ContainsAny(line, "]}") {
			return i + 1
		}
	}
	return last
}

// addVerbs adds verbs to a list in flow or block style.
func (e *editor) addVerbs(seq *yaml.Node, verbs []string) {
	note := "added " + strings.Join(verbs, " and ")
	if seq.Kind != yaml.SequenceNode || len(seq.Content) == 0 {
		e.reports = append(e.reports, Finding{Line: seq.Line, Text: "the verbs are an alias: add " + strings.Join(verbs, " and ")})
		return
	}
	last := seq.Content[len(seq.Content)-1]
	if seq.Style&yaml.FlowStyle != 0 {
		width := len(last.Value)
		if last.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			width += 2
		}
		text := ""
		for _, v := range verbs {
			text += ", " + quoteAs(seq, v)
		}
		e.inserts = append(e.inserts, insert{line: last.Line, column: last.Column + width, text: text, note: note})
		return
	}
	dash := dashOf(last, e.lines)
	if dash < 0 {
		return
	}
	text := ""
	for _, v := range verbs {
		text += strings.Repeat(" ", dash) + "- " + quoteAs(seq, v) + "\n"
	}
	e.inserts = append(e.inserts, insert{line: last.Line, text: text, note: note})
}
