package catalog

import (
	"cmp"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// maxDepth bounds through how many functions the catalogue follows the parameters of one
// event, and maxPaths through how many calls. A wrapper of a large program has some
// hundreds of callers.
const (
	maxDepth = 8
	maxPaths = 5000
)

// tooMany is bound to a function whose callers are more than the catalogue follows.
var tooMany ssa.CallInstruction = &ssa.Call{}

// New returns the catalogue of programs, and the number of calls of recorders in it.
// packages contains the programs, and the packages that they import. With lines, places have
// line numbers.
func New(programs, packages []*packages.Package, lines bool) (*Catalog, int) {
	roots := map[string]bool{}
	for _, r := range programs {
		roots[r.PkgPath] = true
	}
	p := newProgram(packages, roots)
	c := &Catalog{}
	instances := map[*ssa.Function]bool{}
	for fn := range p.live {
		instances[fn.Origin()] = true
	}
	calls := map[string]bool{}
	for _, m := range p.emissions {
		if p.passesOn(m) || instances[outermost(m.Parent())] {
			continue
		}
		calls[p.Fset.Position(m.Pos()).String()] = true
		b := &builder{p, c, lines, m, 0}
		b.expand(bindings{})
	}
	for fn, uses := range p.values {
		if !isRecorder(fn) || !isWrapper(fn) || !p.escapes(fn) {
			continue
		}
		for _, use := range uses {
			text, pos := source(use.Value)
			at := p.place(cmp.Or(use.Instruction.Pos(), pos, use.Instruction.Parent().Pos()), use.Instruction.Parent(), lines)
			c.Open = append(c.Open, Open{at, "event", text, "a method of a recorder that is a value: its calls are not here"})
		}
	}
	return c.sorted(), len(calls)
}

// passesOn reports whether a method of a recorder emits an event of its caller, who decides
// about the reason. It can have events of its own besides these.
func (p *program) passesOn(m emission) bool {
	outer := outermost(m.Parent())
	if !isRecorder(outer) {
		return false
	}
	needs := &need{}
	t := &tracer{p, nil, needs, map[ssa.Value]bool{}}
	t.texts(m.args[m.params.Reason], false, func(ssa.Value, string) {})
	return needs.of == outer
}

// isRecorder reports whether a function is a method of a recorder.
func isRecorder(fn *ssa.Function) bool {
	f, ok := fn.Object().(*types.Func)
	if ok {
		_, ok = move.SignatureOf(f)
	}
	return ok
}

// builder makes the events of one call of a recorder.
type builder struct {
	*program
	catalog *Catalog
	lines   bool
	emission
	paths int
}

// expand adds the events of a call. If a caller decides about one of its fields, each
// caller makes an event of its own.
func (b *builder) expand(bound bindings) {
	e := b.evaluate(bound)
	if e.needs.of == nil {
		b.paths++
		b.catalog.Events = append(b.catalog.Events, e.events...)
		b.catalog.Open = append(b.catalog.Open, e.open...)
		return
	}
	callers, all := b.callers(e.needs.of)
	var others ssa.CallInstruction
	if len(bound) >= maxDepth || b.paths+len(callers) > maxPaths {
		callers, others = nil, tooMany
	}
	for _, c := range callers {
		next := maps.Clone(bound)
		next[e.needs.of] = c
		b.expand(next)
	}
	if !all || len(callers) == 0 {
		next := maps.Clone(bound)
		next[e.needs.of] = others
		b.expand(next)
	}
}

// evaluation is what a call emits under some bindings.
type evaluation struct {
	*builder
	bound  bindings
	needs  *need
	events []Event
	open   []Open
}

func (b *builder) evaluate(bound bindings) *evaluation {
	e := &evaluation{builder: b, bound: bound, needs: &need{}}
	event := Event{
		Regarding: e.kinds("regarding", 0),
		Types:     e.values("type", b.params.Reason-1),
		Places:    []Place{b.at()},
	}
	if len(event.Regarding) == 0 {
		event.Regarding = []string{Any}
	}
	if b.params.Related >= 0 {
		event.Related = e.kinds("related", b.params.Related)
	}
	if b.params.Action >= 0 {
		event.Actions = e.values("action", b.params.Action)
	}
	note, isFormat := b.note()
	for _, n := range e.texts(note, isFormat, func(ssa.Value, string) {}) {
		event.Notes = append(event.Notes, n.format)
	}
	reasons := e.texts(b.args[b.params.Reason], false, func(v ssa.Value, why string) { e.unknown("reason", v, why) })
	for _, r := range reasons {
		event.Reason, event.Variable = r.format, r.open
		if !r.open {
			event.Reason = plain(r.format)
		}
		e.events = append(e.events, event)
	}
	return e
}

// note returns the note, and whether it is a format. The format "%s" has the note after it.
func (b *builder) note() (ssa.Value, bool) {
	note := b.args[b.params.Note]
	if !b.params.Format {
		return note, false
	}
	args, _ := b.variadic(b.args[b.params.Note+1])
	if s, _ := stringOf(note); s == "%s" && len(args) == 1 {
		if i, ok := args[0].(*ssa.MakeInterface); ok && isString(i.X.Type()) {
			return i.X, false
		}
	}
	return note, true
}

func (b *builder) at() Place { return b.place(b.Common().Pos(), b.Parent(), b.lines) }

func (e *evaluation) unknown(field string, v ssa.Value, why string) {
	text, _ := source(v)
	e.open = append(e.open, Open{e.at(), field, text, why})
}

// source returns the expression of a value, or of what is at an address, and where that is.
func source(v ssa.Value) (text string, pos token.Pos) {
	if i, ok := v.(*ssa.MakeInterface); ok {
		return source(i.X)
	}
	text = strings.TrimSuffix(v.Name(), "$thunk")
	if v.Referrers() == nil {
		return text, pos
	}
	for _, r := range slices.Backward(*v.Referrers()) {
		switch r := r.(type) {
		case *ssa.UnOp:
			return source(r)
		case *ssa.DebugRef:
			if !r.IsAddr {
				text, pos = types.ExprString(r.Expr), r.Expr.Pos()
			}
		}
	}
	return text, pos
}

func (e *evaluation) tracer() *tracer {
	return &tracer{e.program, e.bound, e.needs, map[ssa.Value]bool{}}
}

// texts returns the values of an argument, apart from that of a variable that nothing has set.
func (e *evaluation) texts(v ssa.Value, isFormat bool, unknown func(ssa.Value, string)) []text {
	list := e.tracer().texts(v, isFormat, unknown)
	if len(list) > 1 {
		list = slices.DeleteFunc(list, func(t text) bool { return t.format == "" })
	}
	return list
}

// values returns the values of an argument that takes few of them.
func (e *evaluation) values(field string, i int) (list []string) {
	for _, t := range e.texts(e.args[i], false, func(v ssa.Value, why string) { e.unknown(field, v, why) }) {
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
	t := e.tracer()
	t.trace(e.args[i], func(v ssa.Value, why string) bool {
		n := namedOf(v.Type())
		if p, ok := v.Type().(*types.Tuple); ok {
			n = namedOf(p.At(0).Type())
		}
		isReference := n != nil && namesKind[n.Obj().Name()]
		alloc, isAlloc := v.(*ssa.Alloc)
		constant, isConst := v.(*ssa.Const)
		switch {
		case isReference && isAlloc:
			if kinds := t.kindIn(alloc); len(kinds) > 0 {
				list = append(list, kinds...)
				return true
			}
			why = fromData
		case isReference && why != "":
			why = fromData
		case isConst && constant.IsNil():
			return true
		case why == "" && n != nil && !isReference && !types.IsInterface(n):
			list = append(list, n.Obj().Name())
			return true
		}
		if why != "" {
			// Readers look for the argument: where its kind is lost is often far away.
			e.unknown(field, e.args[i], why)
			list = append(list, Any)
		}
		return why != ""
	})
	return unique(list, strings.Compare)
}

// namesKind are the types whose values name the kind of an object.
var namesKind = map[string]bool{"ObjectReference": true, "PartialObjectMetadata": true, "Unstructured": true}

// fromData is why the kind of an object is open that a program does not have a type for.
const fromData = "its kind comes from data"

// kindIn returns the values of the field Kind of a reference, also of its TypeMeta. It returns
// none if they are not constant.
func (t *tracer) kindIn(base ssa.Value) (list []string) {
	s := elem(base.Type()).Underlying().(*types.Struct)
	open := false
	for i := range s.NumFields() {
		switch s.Field(i).Name() {
		case "Kind":
			inner := &tracer{t.program, t.bound, t.needs, map[ssa.Value]bool{}}
			inner.field(base, base, i, func(v ssa.Value, why string) bool {
				kind, ok := stringOf(v)
				if open = open || why != ""; ok {
					list = append(list, kind)
				}
				return ok
			})
		case "TypeMeta":
			for _, s := range t.stores[s.Field(i)] {
				if a, ok := s.Addr.(*ssa.FieldAddr); ok && isSame(a.X, base) {
					list = append(list, t.kindIn(s.Val)...)
				}
			}
		}
	}
	if open {
		return nil
	}
	return list
}
