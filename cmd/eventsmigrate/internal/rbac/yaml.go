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

// YAML returns a file with the rules for the new group, and what it found. It does not
// change templates, which it reports.
func YAML(src []byte, needs Needs) (out []byte, findings []Finding) {
	if !mentionsEvents(src) {
		return src, nil
	}
	if bytes.Contains(src, []byte("{{")) {
		return src, template(src, needs)
	}
	if !needs.New {
		return src, nil
	}
	var inserts []insert
	d := yaml.NewDecoder(bytes.NewReader(src))
	lines := bytes.SplitAfter(src, []byte("\n"))
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return src, []Finding{{Line: 1, Text: fmt.Sprintf("the file is not valid YAML: %v", err)}}
		}
		if strings.Contains(nameOf(&doc), "leader-election") {
			continue
		}
		visit(&doc, lines, &inserts)
	}
	slices.SortStableFunc(inserts, func(a, b insert) int { return cmp.Or(b.line-a.line, b.column-a.column) })
	for _, i := range inserts {
		if i.column > 0 {
			line := lines[i.line-1]
			at := i.column - 1
			lines[i.line-1] = slices.Concat(line[:at], []byte(i.text), line[at:])
		} else {
			if n := len(lines[i.line-1]); n > 0 && lines[i.line-1][n-1] != '\n' {
				lines[i.line-1] = append(slices.Clone(lines[i.line-1]), '\n')
			}
			lines[i.line-1] = slices.Concat(lines[i.line-1], []byte(i.text))
		}
		findings = append(findings, Finding{Line: i.line, Text: i.note, Changed: true})
	}
	slices.Reverse(findings)
	return bytes.Join(lines, nil), findings
}

// insert is text behind a line, or before a column.
type insert struct {
	line, column int
	text, note   string
}

func mentionsEvents(src []byte) bool {
	return bytes.Contains(src, []byte("events")) && bytes.Contains(src, []byte("apiGroups")) && bytes.Contains(src, []byte("verbs"))
}

// template reports the rules of a template that grant writing core events, unless the file
// grants the new group, too.
func template(src []byte, needs Needs) []Finding {
	if !needs.New || bytes.Contains(src, []byte(Group)) {
		return nil
	}
	for i, line := range strings.Split(string(src), "\n") {
		if word := strings.Trim(strings.TrimSpace(line), `-"'[] `); word == "events" || strings.Contains(line, "resources:") && strings.Contains(line, "events") {
			return []Finding{{Line: i + 1, Text: "the file is a template: add a rule for events in the group " + Group + " with create and patch"}}
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

func get(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func values(n *yaml.Node) (list []string) {
	if n != nil && n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			list = append(list, c.Value)
		}
	}
	return list
}

// visit finds lists of rules.
func visit(n *yaml.Node, lines [][]byte, inserts *[]insert) {
	if n.Kind == yaml.SequenceNode {
		rules(n, lines, inserts)
	}
	for _, c := range n.Content {
		visit(c, lines, inserts)
	}
}

func rules(list *yaml.Node, lines [][]byte, inserts *[]insert) {
	var core *yaml.Node
	granted := false
	for _, r := range list.Content {
		groups, resources, verbs := values(get(r, "apiGroups")), values(get(r, "resources")), values(get(r, "verbs"))
		if get(r, "resourceNames") != nil || !has(resources, "events", "*") || !writes(verbs) {
			continue
		}
		newGroup := has(groups, Group, "*")
		granted = granted || newGroup
		if has(resources, "events") && (newGroup || slices.ContainsFunc(groups, isCore)) && !slices.Equal(complete(verbs), verbs) && len(resources) == 1 {
			addVerbs(get(r, "verbs"), complete(verbs)[len(verbs):], lines, inserts)
		}
		if core == nil && has(resources, "events") && slices.ContainsFunc(groups, isCore) && !newGroup {
			core = r
		}
	}
	if core == nil || granted {
		return
	}
	if list.Style&yaml.FlowStyle != 0 || core.Style&yaml.FlowStyle != 0 {
		return
	}
	dash := dashOf(core, lines)
	if dash < 0 {
		return
	}
	indent := strings.Repeat(" ", dash)
	pad := strings.Repeat(" ", core.Column-1)
	var b strings.Builder
	write := func(key string, items ...string) {
		seq := get(core, key)
		if seq.Style&yaml.FlowStyle != 0 {
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
	*inserts = append(*inserts, insert{line: lastLine(core), text: b.String(), note: "a rule for events in the group " + Group})
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

func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, c := range n.Content {
		last = max(last, lastLine(c))
	}
	return last
}

// addVerbs adds verbs to a list in flow or block style.
func addVerbs(seq *yaml.Node, verbs []string, lines [][]byte, inserts *[]insert) {
	if len(seq.Content) == 0 {
		return
	}
	last := seq.Content[len(seq.Content)-1]
	note := "added " + strings.Join(verbs, " and ")
	if seq.Style&yaml.FlowStyle != 0 {
		width := len(last.Value)
		if last.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			width += 2
		}
		text := ""
		for _, v := range verbs {
			text += ", " + quoteAs(seq, v)
		}
		*inserts = append(*inserts, insert{line: last.Line, column: last.Column + width, text: text, note: note})
		return
	}
	dash := dashOf(last, lines)
	if dash < 0 {
		return
	}
	text := ""
	for _, v := range verbs {
		text += strings.Repeat(" ", dash) + "- " + quoteAs(seq, v) + "\n"
	}
	*inserts = append(*inserts, insert{line: last.Line, text: text, note: note})
}
