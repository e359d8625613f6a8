package catalog

import (
	"cmp"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// bindings say which call of a function the catalogue follows. A function that is bound to
// nil has callers that it does not know; see also tooMany.
type bindings map[*ssa.Function]ssa.CallInstruction

// tracer follows a value to what decides about it.
type tracer struct {
	*program
	bound bindings
	needs *need
	seen  map[ssa.Value]bool
}

// need is a function whose caller decides about a value, if there is one.
type need struct{ of *ssa.Function }

// leaf receives a value that decides about another one. It reports whether it knows the
// value; why tells why the tracer cannot follow it further, or is empty if it can.
type leaf func(v ssa.Value, why string) bool

// fork returns a tracer that follows another value on the same path.
func (t *tracer) fork() *tracer {
	return &tracer{t.program, t.bound, t.needs, maps.Clone(t.seen)}
}

// trace calls leaf with each value that can be v. An address stands for what it contains.
func (t *tracer) trace(v ssa.Value, leaf leaf) {
	if t.seen[v] {
		return
	}
	t.seen[v] = true
	if leaf(v, "") {
		return
	}
	switch v := v.(type) {
	case *ssa.Phi:
		for _, e := range v.Edges {
			t.trace(e, leaf)
		}
	case *ssa.MakeInterface, *ssa.ChangeInterface, *ssa.ChangeType, *ssa.Convert, *ssa.TypeAssert:
		t.trace(*v.(ssa.Instruction).Operands(nil)[0], leaf)
	case *ssa.Slice:
		if isString(v.Type()) {
			leaf(v, "an operator computes it")
			return
		}
		t.trace(v.X, leaf)
	case *ssa.UnOp:
		if v.Op != token.MUL {
			leaf(v, "an operator computes it")
			return
		}
		t.trace(v.X, leaf)
	case *ssa.Parameter:
		t.parameter(v, leaf)
	case *ssa.FreeVar:
		if b := binding(v); b != nil {
			t.trace(b, leaf)
			return
		}
		leaf(v, "the catalogue does not follow it")
	case *ssa.Alloc, *ssa.Global:
		t.variable(v, leaf)
	case *ssa.FieldAddr:
		t.field(v, v.X, v.Field, leaf)
	case *ssa.Field:
		t.field(v, v.X, v.Field, leaf)
	case *ssa.IndexAddr:
		t.element(v, v.X, leaf)
	case *ssa.Index:
		t.element(v, v.X, leaf)
	case *ssa.Lookup:
		t.element(v, v.X, leaf)
	case *ssa.Call:
		t.result(v, v, 0, leaf)
	case *ssa.Extract:
		switch tuple := v.Tuple.(type) {
		case *ssa.Call:
			t.result(v, tuple, v.Index, leaf)
		case *ssa.Next:
			t.element(v, tuple.Iter.(*ssa.Range).X, leaf)
		default:
			t.trace(tuple, leaf)
		}
	default:
		leaf(v, "the catalogue does not follow it")
	}
}

// variable follows a variable to all that the program sets it to.
func (t *tracer) variable(v ssa.Value, leaf leaf) {
	switch {
	case t.opaque[v]:
		leaf(v, "other code sets the variable")
		return
	case len(t.stores[v]) == 0:
		leaf(v, "nothing sets the variable")
	}
	for _, s := range t.stores[v] {
		t.trace(s.Val, leaf)
	}
}

// parameter follows a parameter to the argument of the call that is bound, or says whose
// callers decide.
func (t *tracer) parameter(v *ssa.Parameter, leaf leaf) {
	fn := v.Parent()
	call, ok := t.bound[fn]
	switch {
	case !ok:
		t.needs.of = cmp.Or(t.needs.of, fn)
	case call == nil:
		leaf(v, "a parameter of "+nameOf(outermost(fn))+", whose callers the program does not contain")
	case call == tooMany:
		leaf(v, "a parameter of "+nameOf(outermost(fn))+", which is called in too many ways")
	default:
		args := call.Common().Args
		if call.Common().IsInvoke() {
			args = append([]ssa.Value{call.Common().Value}, args...)
		}
		t.trace(args[slices.Index(fn.Params, v)], leaf)
	}
}

// field follows a field to all values that the program sets it to. If it has a tag, other
// programs set it, too: then only the same struct tells.
func (t *tracer) field(v, base ssa.Value, index int, leaf leaf) {
	f, tag := fieldOf(base, index)
	if stores := t.stores[f]; tag == "" && !t.opaque[f] && len(stores) > 0 {
		for _, s := range stores {
			t.trace(s.Val, leaf)
		}
		return
	}
	var values []ssa.Value
	var unknown bool
	t.fork().trace(base, func(x ssa.Value, why string) bool {
		if _, zero := x.(*ssa.Const); zero {
			return true
		}
		unknown = unknown || why != ""
		found := false
		for _, s := range t.stores[f] {
			if a, ok := s.Addr.(*ssa.FieldAddr); ok && isSame(a.X, x) {
				values, found = append(values, s.Val), true
			}
		}
		if _, ok := x.(*ssa.Alloc); !ok || len(t.stores[x]) > 0 {
			return false
		}
		unknown = unknown || !found
		return true
	})
	if unknown || len(values) == 0 && t.needs.of == nil {
		leaf(v, "a field that other code sets")
		return
	}
	for _, x := range values {
		t.trace(x, leaf)
	}
}

// element follows the elements of a list or a map that a literal makes, and what they are
// set to.
func (t *tracer) element(v, of ssa.Value, leaf leaf) {
	var values []ssa.Value
	var unknown bool
	t.fork().trace(of, func(x ssa.Value, why string) bool {
		unknown = unknown || why != ""
		_, isMap := x.(*ssa.MakeMap)
		_, isArray := elem(x.Type()).Underlying().(*types.Array)
		values = append(values, t.elements[variable(x)]...)
		return isMap || isArray
	})
	if unknown || len(values) == 0 && t.needs.of == nil {
		leaf(v, "an element of a list or a map")
		return
	}
	for _, x := range values {
		t.trace(x, leaf)
	}
}

// result follows a result of a call to what the function returns.
func (t *tracer) result(v ssa.Value, call *ssa.Call, index int, leaf leaf) {
	c := call.Common()
	fn := c.StaticCallee()
	name := "a function value"
	switch {
	case c.IsInvoke():
		name = c.Method.FullName()
	case fn != nil && fn.Object() != nil:
		name = fn.Object().(*types.Func).FullName()
	}
	switch {
	case name == "k8s.io/client-go/tools/reference.GetReference" && index == 0: // it has the kind of the object
		t.trace(c.Args[1], leaf)
		return
	case strings.Contains(name, ").DeepCopy"):
		if c.IsInvoke() {
			t.trace(c.Value, leaf)
		} else {
			t.trace(c.Args[0], leaf)
		}
		return
	case fn == nil || fn.Blocks == nil:
		leaf(v, "the result of "+name)
		return
	}
	if _, ok := t.bound[fn]; ok || len(t.bound) > maxDepth {
		leaf(v, "the result of "+nameOf(outermost(fn))+", which calls itself or many functions")
		return
	}
	// Its parameters have the arguments of this call, and its values depend on them.
	inner := t.fork()
	inner.bound = maps.Clone(t.bound)
	inner.bound[fn] = call
	maps.DeleteFunc(inner.seen, func(v ssa.Value, _ bool) bool { return v.Parent() == fn })
	for _, i := range instructions(fn) {
		if r, ok := i.(*ssa.Return); ok && len(r.Results) > index {
			inner.trace(r.Results[index], leaf)
		}
	}
}

// variable returns the variable that contains what is at an address, or in a list or a map.
func variable(v ssa.Value) any {
	switch v := v.(type) {
	case *ssa.FieldAddr:
		f, _ := fieldOf(v.X, v.Field)
		return f
	case *ssa.UnOp:
		return variable(v.X)
	case *ssa.Slice:
		return variable(v.X)
	case *ssa.FreeVar:
		if b := binding(v); b != nil {
			return variable(b)
		}
	}
	return v
}

// binding returns the variable of the function around a literal, or nil in a wrapper.
func binding(v *ssa.FreeVar) ssa.Value {
	fn := v.Parent()
	if fn.Parent() == nil {
		return nil
	}
	for _, r := range *fn.Referrers() {
		if c, ok := r.(*ssa.MakeClosure); ok && c.Fn == fn {
			return c.Bindings[slices.Index(fn.FreeVars, v)]
		}
	}
	return nil
}

// fieldOf returns a field of a struct or of that to which a pointer points, and its tag.
func fieldOf(base ssa.Value, index int) (*types.Var, reflect.StructTag) {
	s := elem(base.Type()).Underlying().(*types.Struct)
	return s.Field(index).Origin(), reflect.StructTag(s.Tag(index))
}

// isSame reports whether two values of a function are the same, or the same part of the same.
func isSame(a, b ssa.Value) bool {
	switch x := a.(type) {
	case *ssa.FieldAddr:
		y, ok := b.(*ssa.FieldAddr)
		return ok && x.Field == y.Field && isSame(x.X, y.X)
	case *ssa.UnOp:
		y, ok := b.(*ssa.UnOp)
		return ok && x.Op == y.Op && isSame(x.X, y.X)
	}
	return a == b
}

// text is a format with the constant parts of a string.
type text struct {
	format string
	open   bool // it has a variable part
}

// maxTexts bounds how many values a string has in the catalogue.
const maxTexts = 24

// texts returns the values of a string, as formats, at least one. If isFormat is true, the
// string is a format itself. unknown receives the parts that are variable.
func (t *tracer) texts(v ssa.Value, isFormat bool, unknown func(ssa.Value, string)) (list []text) {
	t.trace(v, func(v ssa.Value, why string) bool {
		if why != "" {
			unknown(v, why)
			list = append(list, text{"%s", true})
			return true
		}
		found, ok := t.literal(v, isFormat, unknown)
		list = append(list, found...)
		return ok
	})
	list = unique(list, func(a, b text) int { return strings.Compare(a.format, b.format) })
	switch {
	case len(list) > maxTexts:
		unknown(v, fmt.Sprintf("one of %d values", len(list)))
	case len(list) > 0:
		return list
	case t.needs.of == nil:
		unknown(v, "nothing that the catalogue follows sets it")
	}
	return []text{{"%s", true}}
}

// literal returns the values of a constant, and of an expression that formats a string.
func (t *tracer) literal(v ssa.Value, isFormat bool, unknown func(ssa.Value, string)) ([]text, bool) {
	switch v := v.(type) {
	case *ssa.Const:
		s, ok := stringOf(v)
		if !isFormat {
			s = strings.ReplaceAll(s, "%", "%%")
		}
		return []text{{s, false}}, ok
	case *ssa.BinOp:
		if v.Op != token.ADD {
			return nil, false
		}
		var list []text
		right := t.fork().texts(v.Y, isFormat, unknown)
		for _, x := range t.fork().texts(v.X, isFormat, unknown) {
			for _, y := range right {
				list = append(list, text{x.format + y.format, x.open || y.open})
			}
		}
		return list, true
	case *ssa.Call:
		if fn := v.Common().StaticCallee(); fn != nil && fn.String() == "fmt.Sprintf" {
			unknown(v, "fmt.Sprintf makes it")
			list := t.fork().texts(v.Call.Args[0], true, unknown)
			for i := range list {
				list[i].open = true
			}
			return list, true
		}
	}
	return nil, false
}

// stringOf returns a constant string.
func stringOf(v ssa.Value) (string, bool) {
	c, ok := v.(*ssa.Const)
	if !ok || c.Value == nil || c.Value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(c.Value), true
}

// variadic returns the variadic arguments of a call, unless the caller passes a list.
func (p *program) variadic(v ssa.Value) ([]ssa.Value, bool) {
	if s, ok := v.(*ssa.Slice); ok {
		return p.elements[variable(s)], true
	}
	_, none := v.(*ssa.Const)
	return nil, none
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}
