package move

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Output is a changed file.
type Output struct {
	File *File
	Src  []byte
	Raw  []byte // Src before formatting
	Err  error  // the edits are not valid Go

	sets  []node
	spans []span
}

// span is the place of an edit in Raw, and in the file before.
type span struct {
	from, to int
	set      node
	pos, end token.Pos
}

// Outputs returns the changed files.
func (p *Program) Outputs(plan *Plan, target Target) map[string]*Output {
	out := map[string]*Output{}
	for _, f := range p.Files {
		if o := p.output(f, plan, target); o != nil {
			out[f.Name] = o
		}
	}
	return out
}

// Sets returns the sets that change the line of an offset in Raw, or all that change the
// file if there are none.
func (o *Output) Sets(offset int) (sets []token.Pos) {
	if offset < 0 || offset > len(o.Raw) {
		return o.sets
	}
	from := bytes.LastIndexByte(o.Raw[:offset], '\n') + 1
	to := len(o.Raw)
	if i := bytes.IndexByte(o.Raw[offset:], '\n'); i >= 0 {
		to = offset + i
	}
	for _, s := range o.spans {
		if s.to >= from && s.from <= to && s.set != 0 && !slices.Contains(sets, s.set) {
			sets = append(sets, s.set)
		}
	}
	if len(sets) == 0 {
		return o.sets
	}
	return sets
}

// Origin returns the position in the file before that became an offset in Raw. For new
// text, it is the begin of what the text replaces.
func (o *Output) Origin(offset int) token.Pos {
	base := token.Pos(o.File.offset)
	for _, s := range slices.Backward(o.spans) {
		switch {
		case offset >= s.to:
			return s.end + token.Pos(offset-s.to)
		case offset >= s.from:
			return s.pos
		}
	}
	return base + token.Pos(offset)
}

// constructs reports whether a file uses more of package record than names that mean the
// same in compat/record: an import of the latter then has an effect.
func (f *File) constructs() bool {
	for id, o := range f.Pkg.Info.Uses {
		if id.Pos() < f.AST.FileStart || id.Pos() >= f.AST.FileEnd || o.Pkg() == nil || o.Pkg().Path() != recordPath || o.Parent() != o.Pkg().Scope() || o.Name() == "NewFakeRecorder" {
			continue
		}
		if _, isType := o.(*types.TypeName); !isType || o.Name() == "BroadcasterOption" {
			return true
		}
	}
	return false
}

// newline returns the end of a line, and the indentation of the line at pos.
func (f *File) newline(pos token.Pos) string {
	line := lineBefore(f, pos)
	end := "\n"
	if bytes.Contains(f.Src, []byte("\r\n")) {
		end = "\r\n"
	}
	return end + line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// output returns a file with the edits of a plan, or nil if nothing changes.
func (p *Program) output(f *File, plan *Plan, target Target) *Output {
	if f.Skip != "" {
		return nil
	}
	edits := slices.Clone(plan.edits[f])
	swaps := f.imports(recordPath) && plan.swap[recordPath] && (target == Record || f.constructs()) || f.imports(clientPath) && plan.swap[clientPath]
	if len(edits) == 0 && (f.Outside || !swaps) {
		return nil
	}
	n := &names{p: p, f: f, edits: edits, chosen: map[string]string{}, swap: plan.swap[clientPath] && !f.Outside}
	n.choose()
	edits = append(edits, n.imports()...)
	if todos := plan.constants[f]; len(todos) > 0 {
		edits = append(edits, edit{pos: f.afterImports(), end: f.afterImports(), text: constants(todos)})
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(int(a.pos-b.pos), int(a.end-b.end)) })
	o := &Output{File: f}
	var b bytes.Buffer
	last := 0
	for _, e := range edits {
		if e.set != 0 && !slices.Contains(o.sets, e.set) {
			o.sets = append(o.sets, e.set)
		}
		from, to := f.at(e.pos), f.at(e.end)
		if from < last {
			return &Output{File: f, Err: fmt.Errorf("overlapping edits at %s", p.Fset.Position(e.pos)), sets: o.sets}
		}
		text := qualifier.ReplaceAllStringFunc(e.text, func(q string) string { return n.chosen[strings.Trim(q, "\x01\x02")] })
		text = strings.ReplaceAll(text, "\n", f.newline(e.pos))
		b.Write(f.Src[last:from])
		o.spans = append(o.spans, span{b.Len(), b.Len() + len(text), e.set, e.pos, e.end})
		b.WriteString(text)
		last = to
	}
	b.Write(f.Src[last:])
	o.Raw = b.Bytes()
	o.Src = o.Raw
	// A file that is not formatted keeps its form, for example its line ends.
	if was, err := format.Source(f.Src); err == nil && bytes.Equal(was, f.Src) {
		o.Src, o.Err = format.Source(o.Raw)
	}
	return o
}

// todoPrefix begins the comment of a constant for an action that a person must name.
const todoPrefix = "// TODO(eventsmigrate): "

func constants(todos []*todo) string {
	var b strings.Builder
	for _, t := range todos {
		fmt.Fprintf(&b, "\n%s%s.\nconst %s = \"Reconcile\"\n", todoPrefix, t.text, t.name)
	}
	return b.String()
}

// afterImports returns the begin of the line after the last import, or after the package
// clause.
func (f *File) afterImports() token.Pos {
	end := f.AST.Name.End()
	for _, d := range f.AST.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			end = g.End()
		}
	}
	return f.lineEnd(f.restOfLine(end))
}

// restOfLine returns the end of the line that contains pos.
func (f *File) restOfLine(pos token.Pos) token.Pos {
	i := f.at(pos)
	line, _, _ := bytes.Cut(f.Src[i:], []byte("\n"))
	return pos + token.Pos(len(bytes.TrimSuffix(line, []byte("\r"))))
}

// names chooses the names of imports.
type names struct {
	p      *Program
	f      *File
	edits  []edit
	chosen map[string]string // by path; with the dot
	added  []string          // the specifications of new imports
	swap   bool              // the import of client-go's package events changes
}

// becomes returns the path of an import after the edits.
func (n *names) becomes(known string) string {
	switch {
	case known == recordPath && !n.f.imports(dropInPath): // what stays is of compat/record
		return dropInPath
	case known == clientPath && n.swap:
		return eventsPath
	}
	return known
}

// choose chooses a name for each import that the edits need.
func (n *names) choose() {
	needed := map[string][]token.Pos{}
	for _, e := range n.edits {
		for _, m := range qualifier.FindAllStringSubmatch(e.text, -1) {
			needed[m[1]] = append(needed[m[1]], e.pos)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(needed)) {
		if name, ok := n.existing(p, needed[p]); ok {
			n.chosen[p] = name
			continue
		}
		name, spec := path.Base(p), strconv.Quote(p)
		if !n.free(name, needed[p]) {
			name = cmp.Or(alternatives[p], name)
			for base, i := name, 2; !n.free(name, needed[p]); i++ {
				name = fmt.Sprintf("%s%d", base, i)
			}
			spec = name + " " + spec
		}
		n.chosen[p] = name + "."
		n.added = append(n.added, spec)
	}
}

// alternatives are names for imports whose first choice is taken.
var alternatives = map[string]string{
	eventsPath:  "eventseries",
	dropInPath:  "compatrecord",
	ManagerPath: "eventsruntime",
	compatPath:  "eventscompat",
}

// imports returns the edits of the imports. New ones are beside that of the legacy package,
// or another one of Kubernetes, and those that nothing uses go.
func (n *names) imports() (edits []edit) {
	for _, d := range n.f.AST.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.IMPORT {
			break
		}
		for _, s := range g.Specs {
			edits = append(edits, n.spec(g, s.(*ast.ImportSpec))...)
		}
	}
	if len(n.added) > 0 {
		at := n.f.afterImports()
		edits = append(edits, edit{pos: at, end: at, text: "\nimport " + strings.Join(n.added, "\nimport ") + "\n"})
	}
	return edits
}

// spec returns the edits of an import, and of new ones before it.
func (n *names) spec(g *ast.GenDecl, s *ast.ImportSpec) (edits []edit) {
	known, _ := strconv.Unquote(s.Path.Value)
	from, to, doc, keyword := s.Pos(), s.End(), s.Doc, "\t"
	if !g.Lparen.IsValid() {
		from, to, doc, keyword = g.Pos(), g.End(), g.Doc, "import "
	}
	if doc != nil {
		from = doc.Pos()
	}
	from, to = n.f.lineStart(from), n.f.lineEnd(n.f.restOfLine(to))
	if len(n.added) > 0 && (isLegacyPath(known) || !n.f.imports(recordPath) && !n.f.imports(dropInPath) && strings.Contains(known, "k8s.io/")) {
		for _, spec := range n.added {
			edits = append(edits, edit{pos: from, end: from, text: keyword + spec + "\n"})
		}
		n.added = nil
	}
	switch {
	case !n.keeps(s, known):
		edits = append(edits, edit{pos: from, end: to})
	case n.becomes(known) != known:
		e := edit{pos: s.Path.Pos(), end: s.Path.End(), text: strconv.Quote(n.becomes(known))}
		if known == clientPath {
			e.set = imports
		}
		edits = append(edits, e)
	}
	return edits
}

// keeps reports whether a file with the edits still uses an import.
func (n *names) keeps(s *ast.ImportSpec, known string) bool {
	o := n.pkgName(s)
	if o == nil || o.Name() == "_" || o.Name() == "C" {
		return true
	}
	if name, ok := n.chosen[n.becomes(known)]; ok && (name == "" || name == o.Name()+".") {
		return true
	}
	for x := range ast.Preorder(n.f.AST) {
		id, _ := x.(*ast.Ident)
		used := n.f.Pkg.Info.Uses[id]
		if used == nil || used != o && (o.Name() != "." || used.Pkg() == nil || used.Pkg().Path() != known || used.Parent() != used.Pkg().Scope()) {
			continue
		}
		if !slices.ContainsFunc(n.edits, func(e edit) bool { return e.pos <= id.Pos() && id.Pos() < e.end }) {
			return true
		}
	}
	return false
}

func (f *File) imports(p string) bool {
	return slices.ContainsFunc(f.AST.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(p) })
}

// existing returns the qualifier of an import that the file has, or gets in the place of the
// legacy package.
func (n *names) existing(p string, at []token.Pos) (string, bool) {
	for _, s := range n.f.AST.Imports {
		known, _ := strconv.Unquote(s.Path.Value)
		switch o := n.pkgName(s); {
		case n.becomes(known) != p, o == nil || o.Name() == "_":
		case o.Name() == ".":
			return "", true
		case n.means(o.Name(), at, o):
			return o.Name() + ".", true
		}
	}
	return "", false
}

// pkgName returns the object of an import.
func (n *names) pkgName(s *ast.ImportSpec) types.Object {
	if s.Name != nil {
		return n.f.Pkg.Info.Defs[s.Name]
	}
	return n.f.Pkg.Info.Implicits[s]
}

// means reports whether a name means o at all positions. It is nil for a name without a
// meaning.
func (n *names) means(name string, at []token.Pos, o types.Object) bool {
	file := n.f.Pkg.Info.Scopes[n.f.AST]
	return !slices.ContainsFunc(at, func(pos token.Pos) bool {
		_, found := cmp.Or(file.Innermost(pos), file).LookupParent(name, pos)
		return found != o
	})
}

// free reports whether the file can import a package under a name.
func (n *names) free(name string, at []token.Pos) bool {
	return n.means(name, at, nil) && !slices.Contains(slices.Collect(maps.Values(n.chosen)), name+".") &&
		!slices.ContainsFunc(n.p.Files, func(f *File) bool { // of test variants, too
			return f.Pkg.Types.Path() == n.f.Pkg.Types.Path() && f.Pkg.Types.Scope().Lookup(name) != nil
		})
}

// qualifier is a placeholder for the name of an import.
var qualifier = regexp.MustCompile("\x01([^\x02]*)\x02")

// qualify returns a placeholder for the name of an import, which the file decides.
func qualify(path string) string { return "\x01" + path + "\x02" }
