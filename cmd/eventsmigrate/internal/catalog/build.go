package catalog

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Options configure a catalogue.
type Options struct {
	Lines bool // places have line numbers
}

// maxDepth bounds through how many functions the catalogue follows the parameters of one
// event, and maxPaths through how many calls. A wrapper of a large program has some
// hundreds of callers.
const (
	maxDepth = 8
	maxPaths = 5000
)

// tooMany is bound to a function whose callers are more than the catalogue follows.
var tooMany = &call{}

// New returns the catalogue of programs, and the number of calls of recorders in it.
// packages contains the programs, and the packages that they import.
func New(programs, packages []*packages.Package, opts Options) (*Catalog, int) {
	roots := map[string]bool{}
	for _, r := range programs {
		roots[r.PkgPath] = true
	}
	p := newProgram(packages, roots)
	c := &Catalog{}
	calls := 0
	for _, m := range p.emissions {
		if !p.live[m.in.outermost()] || p.passesOn(m) {
			continue
		}
		calls++
		b := &builder{p, c, opts, m, 0}
		b.expand(bindings{})
	}
	for _, o := range p.open {
		if !p.live[o.in.outermost()] {
			continue
		}
		c.Open = append(c.Open, Open{p.place(o, o.in, opts.Lines), "event", types.ExprString(o.Expr), o.why})
	}
	return c.sorted(), calls
}

// passesOn reports whether a method of a recorder emits an event of its caller, who decides
// about the reason. It can have events of its own besides these.
func (p *program) passesOn(m emission) bool {
	if !forwards(m.in) {
		return false
	}
	if len(m.Args) <= m.args.Reason {
		return true
	}
	t := p.tracer(nil)
	t.texts(expr{m.Args[m.args.Reason], m.in}, false, func(expr, string) {})
	return t.needs == m.in.outermost()
}

// builder makes the events of one call of a recorder.
type builder struct {
	*program
	catalog *Catalog
	opts    Options
	emission
	paths int
}

// expand adds the events of a call. If a caller decides about one of its fields, each
// caller makes an event of its own.
func (b *builder) expand(bound bindings) {
	e := b.evaluate(bound)
	if e.needs == nil {
		b.paths++
		b.catalog.Events = append(b.catalog.Events, e.events...)
		b.catalog.Open = append(b.catalog.Open, e.open...)
		return
	}
	callers, all := b.callers(e.needs)
	var others *call
	if len(bound) >= maxDepth || b.paths+len(callers) > maxPaths {
		callers, others = nil, tooMany
	}
	for _, c := range callers {
		next := maps.Clone(bound)
		next[e.needs] = &c
		b.expand(next)
	}
	if !all || len(callers) == 0 {
		next := maps.Clone(bound)
		next[e.needs] = others
		b.expand(next)
	}
}

// evaluation is what a call emits under some bindings.
type evaluation struct {
	*builder
	bound  bindings
	needs  *function // whose caller decides, if there is one
	events []Event
	open   []Open
}

func (b *builder) evaluate(bound bindings) *evaluation {
	e := &evaluation{builder: b, bound: bound}
	if len(b.Args) <= b.args.Note { // f(g())
		e.unknown("event", expr{b.CallExpr, b.in}, "one call makes all arguments")
		e.events = []Event{{Regarding: []string{Any}, Types: []string{Any}, Reason: "%s", Notes: []string{"%s"}, Variable: true, Places: []Place{b.at()}}}
		return e
	}
	event := Event{
		Regarding: e.kinds("regarding", 0),
		Types:     e.values("type", b.args.Reason-1),
		Places:    []Place{b.at()},
	}
	if len(event.Regarding) == 0 {
		event.Regarding = []string{Any}
	}
	if b.args.Related >= 0 {
		event.Related = e.kinds("related", b.args.Related)
	}
	if b.args.Action >= 0 {
		event.Actions = e.values("action", b.args.Action)
	}
	note, isFormat := b.args.Note, b.args.Format
	if isFormat && b.wraps() {
		note, isFormat = note+1, false
	}
	notes, needs := e.texts(note, isFormat, func(expr, string) {})
	e.need(needs)
	for _, n := range notes {
		event.Notes = append(event.Notes, n.format)
	}
	reasons, needs := e.texts(b.args.Reason, false, func(x expr, why string) { e.unknown("reason", x, why) })
	e.need(needs)
	for _, r := range reasons {
		event.Reason, event.Variable = r.format, r.open
		if !r.open {
			event.Reason = plain(r.format)
		}
		e.events = append(e.events, event)
	}
	return e
}

// wraps reports whether the format is "%s", so that the string after it is the note.
func (b *builder) wraps() bool {
	info, i := b.in.pkg.TypesInfo, b.args.Note
	if len(b.Args) != i+2 || b.Ellipsis.IsValid() || move.StringOf(info, b.Args[i]) != "%s" {
		return false
	}
	t, ok := types.Unalias(info.TypeOf(b.Args[i+1])).(*types.Basic)
	return ok && t.Info()&types.IsString != 0
}

func (b *builder) at() Place { return b.place(b.CallExpr, b.in, b.opts.Lines) }

func (e *evaluation) need(f *function) {
	if e.needs == nil {
		e.needs = f
	}
}

func (e *evaluation) unknown(field string, x expr, why string) {
	e.open = append(e.open, Open{e.at(), field, types.ExprString(x.Expr), why})
}

func (e *evaluation) argument(i int) expr { return expr{e.Args[i], e.in} }

// texts returns the values of an argument, at least one.
func (e *evaluation) texts(i int, isFormat bool, unknown func(expr, string)) ([]text, *function) {
	t := e.tracer(e.bound)
	list := t.texts(e.argument(i), isFormat, unknown)
	if len(list) == 0 {
		if t.needs == nil {
			unknown(e.argument(i), "nothing sets it")
		}
		list = []text{{"%s", true}}
	}
	return list, t.needs
}

// values returns the values of an argument that takes few of them.
func (e *evaluation) values(field string, i int) (list []string) {
	texts, needs := e.texts(i, false, func(x expr, why string) { e.unknown(field, x, why) })
	e.need(needs)
	for _, t := range texts {
		switch {
		case !t.open:
			list = append(list, plain(t.format))
		case t.format == "%s":
			list = append(list, Any)
		default:
			list = append(list, t.format)
		}
	}
	return unique(list, strings.Compare)
}

func plain(format string) string { return strings.ReplaceAll(format, "%%", "%") }

// kinds returns the kinds of the object that an argument can be.
func (e *evaluation) kinds(field string, i int) (list []string) {
	t := e.tracer(e.bound)
	// Readers look for the argument: where its kind is lost is often far away.
	open := func(why string) {
		e.unknown(field, e.argument(i), why)
		list = append(list, Any)
	}
	t.trace(e.argument(i), func(x expr, why string) bool {
		typ := x.in.pkg.TypesInfo.TypeOf(x.Expr)
		if t, ok := typ.(*types.Tuple); ok && t.Len() > 0 {
			typ = t.At(0).Type()
		}
		if name := typeName(typ); why != "" && name != nil && namesKind[name.Name()] {
			why = fromData
		}
		if why != "" {
			open(why)
			return true
		}
		if x.in.pkg.TypesInfo.Types[x.Expr].IsNil() {
			return true
		}
		if p, ok := types.Unalias(typ).(*types.Pointer); ok {
			typ = p.Elem()
		}
		n, ok := types.Unalias(typ).(*types.Named)
		if !ok || types.IsInterface(n) {
			return false
		}
		if !namesKind[n.Obj().Name()] {
			list = append(list, n.Obj().Name())
			return true
		}
		lit, ok := ast.Unparen(x.Expr).(*ast.CompositeLit)
		if ok {
			if kinds := e.kindIn(t, x, lit); len(kinds) > 0 {
				list = append(list, kinds...)
			} else {
				open(fromData)
			}
		}
		return ok
	})
	e.need(t.needs)
	return unique(list, strings.Compare)
}

// namesKind are the types whose values name the kind of an object.
var namesKind = map[string]bool{"ObjectReference": true, "PartialObjectMetadata": true, "Unstructured": true}

// fromData is why the kind of an object is open that a program does not have a type for.
const fromData = "its kind comes from data"

// kindIn returns the values of the field Kind of a reference, of the TypeMeta in a literal,
// or of the key "kind" of unstructured data. It returns none if they are not constant.
func (e *evaluation) kindIn(t *tracer, x expr, lit *ast.CompositeLit) (list []string) {
	ast.Inspect(lit, func(n ast.Node) bool {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		id, isField := kv.Key.(*ast.Ident)
		key, isKey := kv.Key.(*ast.BasicLit)
		if !(isField && id.Name == "Kind" || isKey && key.Value == `"kind"`) {
			// The literal contains other references: to the owners of the object.
			return !isField || id.Name == "TypeMeta" || id.Name == "Object"
		}
		values := t.part(expr{kv.Value, x.in}, false, func(expr, string) {})
		for _, v := range values {
			list = append(list, plain(v.format))
		}
		if slices.ContainsFunc(values, func(v text) bool { return v.open }) {
			list = nil
		}
		return false
	})
	return list
}
