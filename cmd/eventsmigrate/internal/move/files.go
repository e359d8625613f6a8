package move

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
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
	if sets = o.SetsOnLine(offset); len(sets) == 0 {
		return o.sets
	}
	return sets
}

// SetsOnLine returns the sets that change the line of an offset in Raw.
func (o *Output) SetsOnLine(offset int) (sets []token.Pos) {
	if offset < 0 || offset > len(o.Raw) {
		return nil
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
	for _, o := range f.Pkg.Info.Uses {
		if o.Pkg() == nil || o.Pkg().Path() != recordPath || o.Parent() != o.Pkg().Scope() || o.Name() == "NewFakeRecorder" {
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
	if len(edits) == 0 && (f.Outside || !f.imports(recordPath) || !plan.swap || target == EventSeries && !f.constructs()) {
		return nil
	}
	n := &names{p: p, f: f, edits: edits, chosen: map[string]string{}}
	n.choose()
	if todos := plan.constants[f]; len(todos) > 0 {
		edits = append(edits, edit{pos: afterImports(f), end: afterImports(f), text: constants(todos)})
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
		text := strings.ReplaceAll(n.expand(e.text), "\n", f.newline(e.pos))
		b.Write(f.Src[last:from])
		o.spans = append(o.spans, span{b.Len(), b.Len() + len(text), e.set, e.pos, e.end})
		b.WriteString(text)
		last = to
	}
	b.Write(f.Src[last:])
	o.Raw = b.Bytes()
	if o.Err = n.imports(o); o.Err != nil {
		return o
	}
	o.Src = o.Raw
	// A file that is not formatted keeps its form.
	mark := []byte("\ufeff")
	body, marked := bytes.CutPrefix(f.Src, mark)
	if was, err := format.Source(body); err == nil && bytes.Equal(was, bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))) {
		if now, err := format.Source(bytes.TrimPrefix(o.Raw, mark)); err == nil {
			if f.crlf() {
				now = bytes.ReplaceAll(now, []byte("\n"), []byte("\r\n"))
			}
			if marked {
				now = slices.Concat(mark, now)
			}
			o.Src = now
		}
	}
	return o
}

func (f *File) crlf() bool { return bytes.Contains(f.Src, []byte("\r\n")) }

// The comments of constants for actions that a person must name.
const (
	todoReason   = "// TODO(eventsmigrate): name what the controller does when it emits the reason "
	todoVariable = "// TODO(eventsmigrate): name what the controller does; the reason is variable."
)

func constants(todos []todo) string {
	var b strings.Builder
	for _, t := range todos {
		if t.reason != "" {
			fmt.Fprintf(&b, "\n\n%s%s.\nconst %s = \"Reconcile\"", todoReason, word(t.reason), t.name)
		} else {
			fmt.Fprintf(&b, "\n\n%s\nconst %s = \"Reconcile\"", todoVariable, t.name)
		}
	}
	return b.String()
}

// afterImports returns the end of the last import, or that of the package clause.
func afterImports(f *File) token.Pos {
	end := f.AST.Name.End()
	for _, g := range f.importDecls() {
		end = g.End()
	}
	return f.restOfLine(end) // a comment is behind it
}

// importDecls returns the declarations of imports.
func (f *File) importDecls() (list []*ast.GenDecl) {
	for _, d := range f.AST.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			list = append(list, g)
		}
	}
	return list
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
	added  []string          // paths
}

// choose chooses a name for each import that the edits need.
func (n *names) choose() {
	needed := map[string][]token.Pos{}
	var paths []string
	for _, e := range n.edits {
		for _, p := range qualifiers(e.text) {
			if needed[p] == nil {
				paths = append(paths, p)
			}
			needed[p] = append(needed[p], e.pos)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		if name, ok := n.existing(p, needed[p]); ok {
			n.chosen[p] = name
			continue
		}
		base := path.Base(p)
		candidates := append([]string{base}, alternatives[p]...)
		for i := 2; n.chosen[p] == ""; i++ {
			for _, name := range candidates {
				if n.free(name, needed[p]) {
					n.chosen[p] = name + "."
					break
				}
			}
			candidates = []string{fmt.Sprintf("%s%d", base, i)}
		}
		n.added = append(n.added, p)
	}
}

// alternatives are names for imports whose first choice is taken.
var alternatives = map[string][]string{
	eventsPath:  {"eventseries"},
	clientPath:  {"clientevents"},
	dropInPath:  {"compatrecord"},
	managerPath: {"eventsruntime"},
	compatPath:  {"eventscompat"},
	runtimePath: {"apiruntime"},
}

// imports changes the imports of a file with the other edits. An import of the legacy
// package that nothing uses makes room for a new one.
func (n *names) imports(o *Output) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, n.f.Name, o.Raw, parser.ParseComments)
	if err != nil {
		return err
	}
	from, to := region(fset, f)
	changed := len(n.added) > 0
	specs := slices.Clone(f.Imports)
	for i, was := range n.f.AST.Imports {
		spec, name := specs[i], ""
		if was.Name != nil {
			name = was.Name.Name
		}
		known, _ := strconv.Unquote(was.Path.Value)
		keeps := n.keeps(f, was)
		switch {
		case keeps && known == recordPath && !n.f.imports(dropInPath): // what stays is of compat/record
			spec.Path.Value = strconv.Quote(dropInPath)
		case keeps:
			continue
		case isLegacyPath(known) && len(n.added) > 0:
			spec.Path.Value, spec.Name = strconv.Quote(n.added[0]), n.alias(n.added[0])
			n.added = n.added[1:]
		default:
			astutil.DeleteNamedImport(fset, f, name, known)
		}
		changed = true
	}
	if !changed {
		return nil
	}
	for _, p := range n.added {
		name := ""
		if id := n.alias(p); id != nil {
			name = id.Name
		}
		astutil.AddNamedImport(fset, f, name, p)
	}
	var b bytes.Buffer
	if err := format.Node(&b, fset, f); err != nil {
		return err
	}
	fset = token.NewFileSet()
	if f, err = parser.ParseFile(fset, n.f.Name, b.Bytes(), parser.ImportsOnly|parser.ParseComments); err != nil {
		return err
	}
	first, last := region(fset, f)
	text := b.Bytes()[first:last]
	if from == to && len(text) > 0 {
		text = slices.Concat([]byte("\n\n"), text)
	}
	if n.f.crlf() {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	o.Raw = slices.Concat(o.Raw[:from], text, o.Raw[to:])
	for i := range o.spans {
		if s := &o.spans[i]; s.from >= to {
			s.from, s.to = s.from+len(text)-(to-from), s.to+len(text)-(to-from)
		}
	}
	return nil
}

// keeps reports whether a file with the edits still uses an import.
func (n *names) keeps(f *ast.File, spec *ast.ImportSpec) (yes bool) {
	o := n.pkgName(spec)
	switch {
	case spec.Name != nil && spec.Name.Name == ".":
		for id, used := range n.f.Pkg.Info.Uses {
			covered := slices.ContainsFunc(n.edits, func(e edit) bool { return e.pos <= id.Pos() && id.Pos() < e.end })
			if used.Pkg() != nil && strconv.Quote(used.Pkg().Path()) == spec.Path.Value && used.Parent() == used.Pkg().Scope() && n.p.fileOf(id.Pos()) == n.f && !covered {
				return true
			}
		}
		return false
	case o == nil || o.Name() == "_" || o.Name() == "C":
		return true
	}
	ast.Inspect(f, func(x ast.Node) bool {
		if sel, ok := x.(*ast.SelectorExpr); ok {
			id, ok := sel.X.(*ast.Ident)
			yes = yes || ok && id.Name == o.Name() && id.Obj == nil
		}
		return !yes
	})
	return yes
}

// region returns where the imports of a file are, or the end of its package clause.
func region(fset *token.FileSet, f *ast.File) (from, to int) {
	from = fset.Position(f.Name.End()).Offset
	to = from
	first := true
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			at := g.Pos()
			if g.Doc != nil {
				at = g.Doc.Pos()
			}
			if first {
				from, first = fset.Position(at).Offset, false
			}
			to = fset.Position(g.End()).Offset
		}
	}
	return from, to
}

// alias returns the name of an import, or nil if it is that of the package.
func (n *names) alias(p string) *ast.Ident {
	if name := strings.TrimSuffix(n.chosen[p], "."); name != path.Base(p) {
		return ast.NewIdent(name)
	}
	return nil
}

func (f *File) imports(p string) bool {
	return slices.ContainsFunc(f.AST.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(p) })
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// existing returns the qualifier of an import that the file has, or gets in the place of the
// legacy package.
func (n *names) existing(p string, at []token.Pos) (string, bool) {
	for _, s := range n.f.AST.Imports {
		known, _ := strconv.Unquote(s.Path.Value)
		switch o := n.pkgName(s); {
		case known != p && (p != dropInPath || known != recordPath || n.f.imports(dropInPath)), s.Name != nil && s.Name.Name == "_":
		case s.Name != nil && s.Name.Name == ".":
			return "", true
		case o != nil && n.resolves(o.Name(), at, o):
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

// resolves reports whether a name means o at all positions.
func (n *names) resolves(name string, at []token.Pos, o types.Object) bool {
	for _, pos := range at {
		scope := n.scope(pos)
		if scope == nil {
			continue
		}
		if _, found := scope.LookupParent(name, pos); found != o {
			return false
		}
	}
	return true
}

func (n *names) scope(pos token.Pos) *types.Scope {
	fileScope := n.f.Pkg.Info.Scopes[n.f.AST]
	if fileScope == nil {
		return nil
	}
	if s := fileScope.Innermost(pos); s != nil {
		return s
	}
	return fileScope
}

// free reports whether the file can import a package under a name.
func (n *names) free(name string, at []token.Pos) bool {
	for _, f := range n.p.Files { // of test variants, too
		if f.Pkg.Types.Path() == n.f.Pkg.Types.Path() && f.Pkg.Types.Scope().Lookup(name) != nil {
			return false
		}
	}
	for _, c := range n.chosen {
		if c == name+"." {
			return false
		}
	}
	for _, s := range n.f.AST.Imports {
		if o := n.pkgName(s); o != nil && o.Name() == name {
			return false
		}
	}
	for _, pos := range at {
		if scope := n.scope(pos); scope != nil {
			if _, o := scope.LookupParent(name, pos); o != nil && o.Parent() != types.Universe {
				return false
			}
		}
	}
	return true
}

func qualifiers(text string) (paths []string) {
	for {
		_, rest, ok := strings.Cut(text, "\x01")
		if !ok {
			return paths
		}
		p, rest, _ := strings.Cut(rest, "\x02")
		paths = append(paths, p)
		text = rest
	}
}

func (n *names) expand(text string) string {
	for _, p := range qualifiers(text) {
		text = strings.Replace(text, "\x01"+p+"\x02", n.chosen[p], 1)
	}
	return text
}
