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
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
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

// TextEdits returns the changes of all files as edits of an analyzer.
func (p *Program) TextEdits(plan *Plan, target Target) (list []analysis.TextEdit) {
	for _, f := range p.Files {
		edits, _ := p.editsOf(f, plan, target)
		for _, e := range edits {
			list = append(list, analysis.TextEdit{Pos: e.pos, End: e.end, NewText: []byte(e.text)})
		}
	}
	return list
}

// editsOf returns the edits of a file with the names of its imports, and the sets that
// they belong to.
func (p *Program) editsOf(f *File, plan *Plan, target Target) ([]edit, []node) {
	if f.Skip != "" {
		return nil, nil
	}
	edits := slices.Clone(plan.edits[f])
	if len(edits) == 0 && (f.Outside || !plan.swap || target == EventSeries && !f.constructs()) {
		return nil, nil
	}
	var sets []node
	for _, e := range edits {
		if !slices.Contains(sets, e.set) {
			sets = append(sets, e.set)
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(int(a.pos-b.pos), int(a.end-b.end)) })
	n := &names{p: p, f: f, edits: edits, switched: target == Record || target == EventSeries}
	all := n.resolve() // first, so that imports precede constants at the same place
	if todos := plan.constants[f]; len(todos) > 0 {
		at, text := afterImports(f), constants(todos)
		for _, e := range all {
			if e.pos <= at && at < e.end { // the last import goes
				at, text = e.end, text+"\n"
			}
		}
		all = append(all, edit{pos: at, end: at, text: text})
	}
	for _, e := range edits {
		e.text = n.expand(e.text)
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b edit) int { return cmp.Or(int(a.pos-b.pos), int(a.end-b.end)) })
	for i, e := range all {
		all[i].text = strings.ReplaceAll(strings.ReplaceAll(e.text, "\r\n", "\n"), "\n", f.newline(e.pos))
	}
	return all, sets
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

func (p *Program) output(f *File, plan *Plan, target Target) *Output {
	edits, sets := p.editsOf(f, plan, target)
	if len(edits) == 0 {
		return nil
	}
	var b bytes.Buffer
	last := 0
	var spans []span
	for _, e := range edits {
		from, to := f.at(e.pos), f.at(e.end)
		if from < last {
			return &Output{File: f, Err: fmt.Errorf("overlapping edits at %s", p.Fset.Position(e.pos)), sets: sets}
		}
		b.Write(f.Src[last:from])
		spans = append(spans, span{b.Len(), b.Len() + len(e.text), e.set, e.pos, e.end})
		b.WriteString(e.text)
		last = to
	}
	b.Write(f.Src[last:])
	src := b.Bytes()
	raw := src
	if _, err := parser.ParseFile(token.NewFileSet(), f.Name, src, parser.ParseComments); err != nil {
		return &Output{File: f, Err: err, sets: sets}
	}
	// A file that is not formatted keeps its form.
	mark := []byte("\ufeff")
	body, marked := bytes.CutPrefix(f.Src, mark)
	if was, err := format.Source(body); err == nil && bytes.Equal(was, withoutCR(body)) {
		if now, err := format.Source(bytes.TrimPrefix(src, mark)); err == nil {
			src = now
			if bytes.Contains(f.Src, []byte("\r\n")) {
				src = bytes.ReplaceAll(now, []byte("\n"), []byte("\r\n"))
			}
			if marked {
				src = slices.Concat(mark, src)
			}
		}
	}
	return &Output{File: f, Src: src, Raw: raw, sets: sets, spans: spans}
}

func withoutCR(src []byte) []byte { return bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")) }

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
	p        *Program
	f        *File
	edits    []edit
	switched bool // what stays uses compat/record
	chosen   map[string]string
}

// resolve chooses a name for each import that the edits need, and returns the edits of
// the import declarations.
func (n *names) resolve() (edits []edit) {
	n.chosen = map[string]string{}
	needed := map[string][]token.Pos{}
	for _, e := range n.edits {
		for _, p := range qualifiers(e.text) {
			needed[p] = append(needed[p], e.pos)
		}
	}
	var removed, relocated []*ast.ImportSpec
	var added []string
	byPath := map[string][]*ast.ImportSpec{}
	for _, s := range n.f.AST.Imports {
		p, _ := strconv.Unquote(s.Path.Value)
		used, left := n.uses(s)
		_, again := needed[p]
		switch {
		case used > 0 && left == 0 && !again:
			removed = append(removed, s)
			continue
		case p == recordPath && n.switched && left > 0:
			if len(byPath[dropInPath]) == 0 && !n.f.imports(dropInPath) {
				if n.canReplace(s) {
					edits = append(edits, edit{pos: s.Path.Pos(), end: s.Path.End(), text: strconv.Quote(dropInPath)})
				} else {
					relocated = append(relocated, s)
					added = append(added, strings.TrimSpace(n.f.text(s)[:s.Path.Pos()-s.Pos()]+" "+strconv.Quote(dropInPath)))
				}
				byPath[dropInPath] = append(byPath[dropInPath], s)
				continue
			}
		}
		byPath[p] = append(byPath[p], s)
	}
	for _, p := range slices.Sorted(maps.Keys(needed)) {
		if name, ok := n.existing(p, byPath[p], needed[p]); ok {
			n.chosen[p] = name
			continue
		}
		base := path.Base(p)
		if p == klogPath {
			base = "klog"
		}
		name := ""
		for _, candidate := range append([]string{base}, alternatives[p]...) {
			if n.free(candidate, needed[p], removed) {
				name = candidate
				break
			}
		}
		for i := 2; name == ""; i++ {
			if c := fmt.Sprintf("%s%d", base, i); n.free(c, needed[p], removed) {
				name = c
			}
		}
		n.chosen[p] = name + "."
		spec := strconv.Quote(p)
		if name != base {
			spec = name + " " + spec
		}
		// Replace the import of the legacy package in its place.
		if i := slices.IndexFunc(removed, isRecordImport); i >= 0 && !isStandard(p) && n.canReplace(removed[i]) {
			s := removed[i]
			from := s.Path.Pos()
			if s.Name != nil {
				from = s.Name.Pos()
			}
			edits = append(edits, edit{pos: from, end: s.Path.End(), text: spec})
			removed = slices.Delete(removed, i, i+1)
			continue
		}
		added = append(added, spec)
	}
	removed = append(removed, relocated...)
	for _, s := range removed {
		edits = append(edits, n.remove(s, removed)...)
	}
	if len(added) > 0 {
		edits = append(edits, n.add(added, removed)...)
	}
	return edits
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

func isRecordImport(s *ast.ImportSpec) bool {
	p, _ := strconv.Unquote(s.Path.Value)
	return isLegacyPath(p)
}

func (f *File) imports(p string) bool {
	return slices.ContainsFunc(f.AST.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == strconv.Quote(p) })
}

// pkgName returns the object of an import.
func (n *names) pkgName(s *ast.ImportSpec) types.Object {
	if s.Name != nil {
		return n.f.Pkg.Info.Defs[s.Name]
	}
	return n.f.Pkg.Info.Implicits[s]
}

// uses counts the uses of an import, and those that no edit replaces.
func (n *names) uses(s *ast.ImportSpec) (used, left int) {
	info := n.f.Pkg.Info
	o := n.pkgName(s)
	dot := s.Name != nil && s.Name.Name == "."
	p, _ := strconv.Unquote(s.Path.Value)
	sels := map[*ast.Ident]bool{}
	ast.Inspect(n.f.AST, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.SelectorExpr:
			sels[x.Sel] = true
		case *ast.Ident:
			of := info.Uses[x]
			switch {
			case of == nil:
				return true
			case dot:
				if sels[x] || of.Pkg() == nil || of.Pkg().Path() != p || of.Parent() != of.Pkg().Scope() {
					return true
				}
			case of != o:
				return true
			}
			used++
			if !n.replaced(x.Pos()) {
				left++
			}
		}
		return true
	})
	return used, left
}

func (n *names) replaced(pos token.Pos) bool {
	for _, e := range n.edits {
		if e.pos <= pos && pos < e.end {
			// The edit can repeat the text.
			return !repeats(e.text, n.f, pos)
		}
	}
	return false
}

// repeats reports whether the new text still contains the identifier at pos, with a
// selector.
func repeats(text string, f *File, pos token.Pos) bool {
	i := f.at(pos)
	j := i
	for j < len(f.Src) && (isLetter(f.Src[j])) {
		j++
	}
	if j < len(f.Src) && f.Src[j] == '.' {
		j++
	}
	ident := string(f.Src[i:j])
	k := strings.Index(text, ident)
	return strings.HasSuffix(ident, ".") && k >= 0 && (k == 0 || !isLetter(text[k-1]) && text[k-1] != '.')
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// existing returns the qualifier of an import that the file has.
func (n *names) existing(p string, specs []*ast.ImportSpec, at []token.Pos) (string, bool) {
	for _, s := range specs {
		switch {
		case s.Name != nil && s.Name.Name == "_":
		case s.Name != nil && s.Name.Name == ".":
			return "", true
		default:
			o := n.pkgName(s)
			if o == nil {
				continue
			}
			if isRecordImport(s) && p == dropInPath && o.Name() != "" || n.resolves(o.Name(), at, o) {
				return o.Name() + ".", true
			}
		}
	}
	return "", false
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
func (n *names) free(name string, at []token.Pos, removed []*ast.ImportSpec) bool {
	if n.f.Pkg.Types.Scope().Lookup(name) != nil {
		return false
	}
	for _, f := range n.p.Files {
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
		if o := n.pkgName(s); o != nil && o.Name() == name && !slices.Contains(removed, s) {
			return false
		}
	}
	for _, pos := range at {
		if scope := n.scope(pos); scope != nil {
			if _, o := scope.LookupParent(name, pos); o != nil {
				if _, isPkg := o.(*types.PkgName); !isPkg && o.Parent() != types.Universe {
					return false
				}
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

// decl returns the declaration of an import.
func (n *names) decl(s *ast.ImportSpec) *ast.GenDecl {
	for _, g := range n.f.importDecls() {
		if g.Pos() <= s.Pos() && s.End() <= g.End() {
			return g
		}
	}
	return nil
}

func (n *names) remove(s *ast.ImportSpec, all []*ast.ImportSpec) []edit {
	d := n.decl(s)
	if d == nil {
		return nil
	}
	rest := 0
	for _, o := range d.Specs {
		if !slices.Contains(all, o.(*ast.ImportSpec)) {
			rest++
		}
	}
	from, to := s.Pos(), s.End()
	if s.Doc != nil {
		from = s.Doc.Pos()
	}
	if s.Comment != nil {
		to = s.Comment.End()
	}
	if rest == 0 {
		if d.Specs[0] != ast.Spec(s) {
			return nil // with the first one
		}
		if from = d.Pos(); d.Lparen.IsValid() {
			to = d.End()
		}
	}
	return []edit{{pos: n.f.lineStart(from), end: n.f.lineEnd(to)}}
}

// add inserts imports: standard ones behind a standard one, others behind the one with
// the longest common prefix.
func (n *names) add(specs []string, removed []*ast.ImportSpec) (edits []edit) {
	for _, spec := range specs {
		quoted := spec[strings.IndexByte(spec, '"'):]
		p, _ := strconv.Unquote(quoted)
		var best *ast.ImportSpec
		score := -1
		for _, s := range n.f.AST.Imports {
			if slices.Contains(removed, s) {
				continue
			}
			q, _ := strconv.Unquote(s.Path.Value)
			if isStandard(p) != isStandard(q) || q == "C" {
				continue
			}
			if d := n.decl(s); d == nil || !d.Lparen.IsValid() || n.described(d, s) {
				continue
			}
			if k := n.affinity(p, q); k >= score {
				best, score = s, k
			}
		}
		if best != nil {
			at := best.End()
			if best.Comment != nil {
				at = best.Comment.End()
			}
			edits = append(edits, edit{pos: at, end: at, text: "\n" + spec})
			continue
		}
		// A declaration of its own; a block that exists gets a new group.
		var block *ast.GenDecl
		for _, g := range slices.Backward(n.f.importDecls()) {
			if g.Lparen.IsValid() {
				block = g
			}
		}
		switch {
		case block != nil && isStandard(p):
			edits = append(edits, edit{pos: block.Lparen + 1, end: block.Lparen + 1, text: "\n\t" + spec + "\n"})
		case block != nil:
			edits = append(edits, edit{pos: block.Rparen, end: block.Rparen, text: "\n\t" + spec + "\n"})
		default:
			if d := firstImport(n.f, removed); d != nil {
				at := d.Pos()
				if d.Doc != nil {
					at = d.Doc.Pos()
				}
				edits = append(edits, edit{pos: at, end: at, text: "import " + spec + "\n"})
			} else {
				edits = append(edits, edit{pos: afterImports(n.f), end: afterImports(n.f), text: "\n\nimport " + spec})
			}
		}
	}
	return edits
}

// affinity returns how well an import fits behind another one: the length of the common
// prefix. Imports of this project take the group of the legacy package, and keep away from
// the group of the program itself.
func (n *names) affinity(p, q string) int {
	switch {
	case isLegacyPath(q):
		return math.MaxInt
	case commonPrefix(p, q) >= len(projectPath):
		return math.MaxInt - 1
	case sameModule(n.f.Pkg.Types.Path(), q):
		return -1
	}
	return commonPrefix(p, q)
}

// sameModule reports whether two packages seem to be of one module: their paths begin with
// the same host, owner and repository.
func sameModule(a, b string) bool {
	x, y := strings.SplitN(a, "/", 4), strings.SplitN(b, "/", 4)
	n := 3
	if !strings.HasPrefix(a, "github.com/") {
		n = 2
	}
	return len(x) >= n && len(y) >= n && slices.Equal(x[:n], y[:n])
}

// described reports whether a comment above the group of an import describes it: another
// import must not get between them.
func (n *names) described(d *ast.GenDecl, s *ast.ImportSpec) bool {
	line := func(pos token.Pos) int { return n.p.Fset.Position(pos).Line }
	i := slices.IndexFunc(d.Specs, func(o ast.Spec) bool { return o == ast.Spec(s) })
	for ; i > 0; i-- {
		if d.Specs[i].(*ast.ImportSpec).Doc != nil || line(d.Specs[i-1].End())+1 < line(d.Specs[i].Pos()) {
			break
		}
	}
	return d.Specs[i].(*ast.ImportSpec).Doc != nil
}

// canReplace reports whether another import can take the place of one: formatting sorts
// it, perhaps between a comment and the import that the comment describes.
func (n *names) canReplace(s *ast.ImportSpec) bool {
	d := n.decl(s)
	return d == nil || s.Doc != nil || !n.described(d, s)
}

func firstImport(f *File, removed []*ast.ImportSpec) *ast.GenDecl {
	for _, g := range f.importDecls() {
		if s := g.Specs[0].(*ast.ImportSpec); !slices.Contains(removed, s) && s.Path.Value != `"C"` {
			return g
		}
	}
	return nil
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
