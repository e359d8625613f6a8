package move

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Reaches reports whether code that imports only pkg can use something that moves: an
// exported name of pkg has a type with a variable or a method that does. Within tells which
// packages belong to the program.
func (p *Plan) Reaches(pkg *types.Package, within func(path string) bool) bool {
	w := &walk{moves: p.moves, within: within, seen: map[types.Type]bool{}}
	for _, name := range pkg.Scope().Names() {
		if o := pkg.Scope().Lookup(name); o.Exported() && w.object(o) {
			return true
		}
	}
	return false
}

// walk finds what moves in types.
type walk struct {
	moves  map[token.Pos]bool
	within func(path string) bool
	seen   map[types.Type]bool
}

func (w *walk) object(o types.Object) bool { return w.moves[o.Pos()] || w.typ(o.Type()) }

func (w *walk) typ(t types.Type) bool {
	if t == nil || w.seen[t] {
		return false
	}
	w.seen[t] = true
	switch t := t.(type) {
	case *types.Alias:
		return w.moves[t.Obj().Pos()] || w.typ(t.Rhs()) || w.list(t.TypeArgs())
	case *types.Named:
		if w.list(t.TypeArgs()) {
			return true
		}
		if pkg := t.Obj().Pkg(); pkg == nil || !w.within(pkg.Path()) {
			return false
		}
		if w.moves[t.Obj().Pos()] {
			return true
		}
		for m := range t.Methods() {
			if m.Exported() && w.object(m.Origin()) {
				return true
			}
		}
		return w.typ(t.Underlying())
	case *types.Struct:
		for f := range t.Fields() {
			if (f.Exported() || f.Embedded()) && w.object(f.Origin()) {
				return true
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() && w.object(m.Origin()) {
				return true
			}
		}
	case *types.Signature:
		for _, tuple := range []*types.Tuple{t.Params(), t.Results()} {
			for v := range tuple.Variables() {
				if w.object(v.Origin()) {
					return true
				}
			}
		}
	case *types.Map:
		return w.typ(t.Key()) || w.typ(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
		return w.typ(t.Elem())
	}
	return false
}

func (w *walk) list(args *types.TypeList) bool {
	for a := range args.Types() {
		if w.typ(a) {
			return true
		}
	}
	return false
}

// On returns what moves among the names on a line of a file, and among the methods and
// fields of their types.
func (p *Plan) On(fset *token.FileSet, info *types.Info, f *ast.File, line int) (list []token.Pos) {
	add := func(o types.Object) {
		if p.moves[o.Pos()] {
			list = append(list, o.Pos())
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil || fset.Position(n.Pos()).Line > line || fset.Position(n.End()).Line < line {
			return false
		}
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		switch o := ObjectOf(info, id).(type) {
		case *types.Var:
			add(o.Origin())
		case *types.Func:
			add(o.Origin())
			for _, tuple := range []*types.Tuple{o.Origin().Signature().Params(), o.Origin().Signature().Results()} {
				for v := range tuple.Variables() {
					add(v)
				}
			}
		}
		for _, t := range results(info.TypeOf(id)) {
			for m := range types.NewMethodSet(t).Methods() {
				if m, ok := m.Obj().(*types.Func); ok {
					add(m.Origin())
				}
			}
			if p, ok := t.Underlying().(*types.Pointer); ok {
				t = p.Elem()
			}
			if s, ok := t.Underlying().(*types.Struct); ok {
				for v := range s.Fields() {
					add(v.Origin())
				}
			}
		}
		return true
	})
	return list
}

// results returns the types of the results of a function, or another type itself.
func results(t types.Type) (list []types.Type) {
	if t == nil {
		return nil
	}
	sig, ok := t.(*types.Signature)
	if !ok {
		return []types.Type{t}
	}
	for v := range sig.Results().Variables() {
		list = append(list, v.Type())
	}
	return list
}
