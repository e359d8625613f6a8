package move

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// Import paths.
const (
	recordPath  = "k8s.io/client-go/tools/record"
	clientPath  = "k8s.io/client-go/tools/events"
	projectPath = "github.com/eventseries/eventseries"
	eventsPath  = projectPath + "/events"
	compatPath  = projectPath + "/compat"
	ManagerPath = projectPath + "/controllerruntime" // of managers and clusters whose recorders emit series
	dropInPath  = projectPath + "/compat/record"
	klogPath    = "k8s.io/klog/v2"
	runtimePath = "k8s.io/apimachinery/pkg/runtime"
)

// isLegacyPath reports whether path is client-go's package record or this project's
// replacement, whose types are aliases.
func isLegacyPath(path string) bool { return path == recordPath || path == dropInPath }

// legacyType returns the name of the legacy recorder that a type name denotes, or "".
func legacyType(o types.Object) string {
	t, ok := o.(*types.TypeName)
	if !ok || t.Pkg() == nil || !isLegacyPath(t.Pkg().Path()) || !slices.Contains([]string{"EventRecorder", "EventRecorderLogger", fake}, t.Name()) {
		return ""
	}
	return t.Name()
}

// fake is the legacy type that compat cannot adapt, since it is no interface.
const fake = "FakeRecorder"

// recorderOf returns the name of a legacy recorder or of a pointer to one, or "".
func recorderOf(t types.Type) string {
	if n := named(t); n != nil {
		return legacyType(n)
	}
	return ""
}

// isBroadcaster reports whether t is a legacy broadcaster. These stay, and become those of
// compat/record by the import.
func isBroadcaster(t types.Type) bool { return isOneOf(t, recordPath, "EventBroadcaster") }

// mentions reports whether t contains a legacy type: in a pointer, a slice, a signature,
// a type argument, and so on. It does not look into structs and interfaces with a name:
// their fields and methods are variables of their own.
func mentions(t types.Type) bool { return mention(t, map[types.Type]bool{}) }

func mention(t types.Type, seen map[types.Type]bool) bool {
	if t == nil {
		return false
	}
	t = types.Unalias(t)
	if seen[t] {
		return false
	}
	seen[t] = true
	in := func(t types.Type) bool { return mention(t, seen) }
	has := func(v *types.Var) bool { return in(v.Type()) }
	switch t := t.(type) {
	case *types.Named:
		if legacyType(t.Obj()) != "" || slices.ContainsFunc(slices.Collect(t.TypeArgs().Types()), in) {
			return true
		}
		if pkg := t.Obj().Pkg(); pkg == nil || isStandard(pkg.Path()) {
			return false
		}
		switch u := t.Underlying().(type) {
		case *types.Struct:
			return false
		case *types.Interface:
			// type Recorder record.EventRecorder, or an interface that embeds only it
			return slices.ContainsFunc(slices.Collect(u.Methods()), func(m *types.Func) bool { return isLegacy(m) && isLegacySignature(m) })
		default:
			return in(u)
		}
	case *types.Map:
		return in(t.Key()) || in(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
		return in(t.Elem())
	case *types.Tuple:
		return slices.ContainsFunc(slices.Collect(t.Variables()), has)
	case *types.Signature:
		return in(t.Params()) || in(t.Results())
	case *types.Struct:
		return slices.ContainsFunc(slices.Collect(t.Fields()), has)
	case *types.Interface:
		return slices.ContainsFunc(slices.Collect(t.EmbeddedTypes()), in)
	case *types.TypeParam:
		return in(t.Constraint())
	}
	return false
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// StringOf returns the value of a constant string, or "" for any other expression.
func StringOf(info *types.Info, e ast.Expr) string {
	if v := info.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

// Signature contains the indices of the parameters of a method that emits an event. They
// are -1 for parameters that the method does not have.
type Signature struct {
	Related, Reason, Action, Note int
	Format                        bool // the note is a format
	Legacy                        bool
}

// signatures are those of the methods that emit events, by their names and types.
var signatures = map[string]Signature{
	"Event(Object, string, string, string)":                                                     {Related: -1, Reason: 2, Action: -1, Note: 3, Legacy: true},
	"Eventf(Object, string, string, string, []any)":                                             {Related: -1, Reason: 2, Action: -1, Note: 3, Format: true, Legacy: true},
	"AnnotatedEventf(Object, map[string]string, string, string, string, []any)":                 {Related: -1, Reason: 3, Action: -1, Note: 4, Format: true, Legacy: true},
	"Eventf(Object, Object, string, string, string, string, []any)":                             {Related: 1, Reason: 3, Action: 4, Note: 5, Format: true},
	"AnnotatedEventf(Object, Object, map[string]string, string, string, string, string, []any)": {Related: 1, Reason: 4, Action: 5, Note: 6, Format: true},
}

// SignatureOf returns the parameters of a method of a recorder, legacy or new. It returns
// false for other functions. Names of parameters do not matter.
func SignatureOf(f *types.Func) (Signature, bool) {
	sig := f.Signature()
	if sig.Recv() == nil || sig.Results().Len() != 0 || sig.Params().Len() < 4 || sig.Params().Len() > 8 {
		return Signature{}, false
	}
	var list []string
	for v := range sig.Params().Variables() {
		t := types.TypeString(types.Unalias(v.Type()), nil)
		t = strings.ReplaceAll(t, "interface{}", "any")
		list = append(list, strings.TrimPrefix(t, runtimePath+"."))
	}
	s, ok := signatures[f.Name()+"("+strings.Join(list, ", ")+")"]
	return s, ok
}

// isLegacySignature reports whether a method has the name and the types of a legacy one. The
// program can declare it.
func isLegacySignature(f *types.Func) bool {
	s, ok := SignatureOf(f)
	return ok && s.Legacy
}

// Emission returns the parameters of the method of a recorder that a call emits an event
// with, legacy or new. It returns false for other calls, and for calls of method
// expressions, whose first argument is the recorder.
func Emission(info *types.Info, call *ast.CallExpr) (Signature, bool) {
	fn, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || isMethodExpr(info, call.Fun) {
		return Signature{}, false
	}
	return SignatureOf(fn)
}

// IsRecorderPackage reports whether a package has broadcasters.
func IsRecorderPackage(path string) bool {
	return isLegacyPath(path) || path == clientPath || path == eventsPath || path == compatPath
}

// MakesBroadcaster reports whether a function of these packages returns a broadcaster, or the adapter
// of one, perhaps with an error.
func MakesBroadcaster(f *types.Func) bool {
	sig := f.Signature()
	return f.Pkg() != nil && IsRecorderPackage(f.Pkg().Path()) && sig.Recv() == nil && sig.Results().Len() > 0 && HasMethod(sig.Results().At(0).Type(), "NewRecorder")
}

// Forwards reports whether a string, or the argument of a call, is a parameter of a function,
// which can be nil: the function is a wrapper of a recorder.
func Forwards(info *types.Info, fun *ast.FuncDecl, e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		e = call.Args[0]
	}
	v, ok := ObjectOf(info, e).(*types.Var)
	return ok && fun != nil && v.Kind() == types.ParamVar && fun.Pos() < v.Pos() && v.Pos() < fun.End() && types.Identical(v.Type(), types.Typ[types.String])
}

// FieldOf returns the names of a field of strings, if an expression is one, and of its type, or "".
// Those of the API belong to somebody else.
func FieldOf(info *types.Info, e ast.Expr) (owner, field string) {
	sel, _ := ast.Unparen(e).(*ast.SelectorExpr)
	if s := info.Selections[sel]; s != nil && s.Kind() == types.FieldVal && !HasMethod(s.Recv(), "DeepCopyInto") && types.Identical(s.Type(), types.Typ[types.String]) {
		if t := named(s.Recv()); t != nil && t.Pkg() != nil {
			return t.Pkg().Name() + "." + t.Name(), s.Obj().Name()
		}
	}
	return "", ""
}

// HasMethod reports whether values of a type have a method.
func HasMethod(t types.Type, name string) bool {
	if t == nil {
		return false
	}
	o, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	return o != nil
}

// IsOurs reports whether a package is one of this project.
func IsOurs(path string) bool { return path == projectPath || strings.HasPrefix(path, projectPath+"/") }
