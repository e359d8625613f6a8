package catalog

import (
	"go/types"
)

// outermost returns the function around literals.
func (f *function) outermost() *function {
	for f.outer != nil {
		f = f.outer
	}
	return f
}

// reach finds the functions that the program can reach: from main, from init, from the
// variables of packages, and from all of a package of roots that is neither a program nor
// for tests. A type counts with all its methods, since interfaces and reflection call them.
func (p *program) reach(roots map[string]bool) {
	methods := map[types.Object][]*function{}
	todo := p.start
	for o, fn := range p.functions {
		isRoot := roots[fn.pkg.PkgPath] && fn.pkg.Name != "main" && !isForTests(fn.pkg)
		switch recv := fn.object.Signature().Recv(); {
		case recv != nil:
			if t := typeName(recv.Type()); t != nil {
				methods[t] = append(methods[t], fn)
			}
			if isRoot {
				todo = append(todo, fn)
			}
		case isRoot, o.Name() == "init" && !isForTests(fn.pkg), o.Name() == "main" && fn.pkg.Name == "main":
			todo = append(todo, fn)
		}
	}
	for len(todo) > 0 {
		fn := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if p.live[fn] {
			continue
		}
		p.live[fn] = true
		for _, o := range fn.uses {
			switch o := o.(type) {
			case *types.Func:
				if next := p.functions[o.Origin()]; next != nil {
					todo = append(todo, next)
				}
			case *types.TypeName:
				todo = append(todo, methods[o]...)
				if next := p.types[o]; next != nil {
					todo = append(todo, next)
				}
			case *types.Var:
				// A variable can have a type without naming it.
				if t := typeName(o.Type()); t != nil {
					todo = append(todo, methods[t]...)
				}
			}
		}
	}
}

// typeName returns the name of a type, or of that to which it points.
func typeName(t types.Type) types.Object {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Origin().Obj()
	}
	return nil
}
