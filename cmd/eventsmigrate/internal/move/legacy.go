package move

import (
	"go/ast"
	"go/constant"
	"go/types"
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
	managerPath = projectPath + "/controllerruntime"
	dropInPath  = projectPath + "/compat/record"
	klogPath    = "k8s.io/klog/v2"
	runtimePath = "k8s.io/apimachinery/pkg/runtime"
)

// kind is the role of a legacy type.
type kind uint8

const (
	none kind = iota
	recorder
	recorderLogger
	fake
)

var kinds = map[string]kind{
	"EventRecorder":       recorder,
	"EventRecorderLogger": recorderLogger,
	"FakeRecorder":        fake,
}

// isLegacyPath reports whether path is client-go's package record or this project's
// replacement, whose types are aliases.
func isLegacyPath(path string) bool { return path == recordPath || path == dropInPath }

// kindOfObject returns the kind that a type name denotes.
func kindOfObject(o types.Object) kind {
	if t, ok := o.(*types.TypeName); ok && t.Pkg() != nil && isLegacyPath(t.Pkg().Path()) {
		return kinds[t.Name()]
	}
	return none
}

// kindOf returns the kind of a legacy type or of a pointer to it.
func kindOf(t types.Type) kind {
	if n := named(t); n != nil {
		return kindOfObject(n)
	}
	return none
}

// isBroadcaster reports whether t is a legacy broadcaster. These stay, and become those of
// compat/record by the import.
func isBroadcaster(t types.Type) bool { return isOneOf(t, recordPath, "EventBroadcaster") }

// isRecorder reports whether t is a legacy recorder: an interface, or the fake.
func isRecorder(t types.Type) bool {
	switch kindOf(t) {
	case recorder, recorderLogger, fake:
		return true
	default:
		return false
	}
}

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
	switch t := t.(type) {
	case *types.Named:
		if kindOfObject(t.Obj()) != none {
			return true
		}
		for a := range t.TypeArgs().Types() {
			if mention(a, seen) {
				return true
			}
		}
		if pkg := t.Obj().Pkg(); pkg == nil || isStandard(pkg.Path()) {
			return false
		}
		switch u := t.Underlying().(type) {
		case *types.Struct:
			return false
		case *types.Interface:
			// type Recorder record.EventRecorder, or an interface that embeds only it
			return isDefinedAs(u)
		default:
			return mention(u, seen)
		}
	case *types.Map:
		return mention(t.Key(), seen) || mention(t.Elem(), seen)
	case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
		return mention(t.Elem(), seen)
	case *types.Tuple:
		for v := range t.Variables() {
			if mention(v.Type(), seen) {
				return true
			}
		}
	case *types.Signature:
		return mention(t.Params(), seen) || mention(t.Results(), seen)
	case *types.Struct:
		for f := range t.Fields() {
			if mention(f.Type(), seen) {
				return true
			}
		}
	case *types.Interface:
		for e := range t.EmbeddedTypes() {
			if mention(e, seen) {
				return true
			}
		}
	}
	if p, ok := t.(*types.TypeParam); ok {
		return mention(p.Constraint(), seen)
	}
	return false
}

// isDefinedAs reports whether an interface with a name has the methods of a legacy recorder
// because it is defined by or embeds that type.
func isDefinedAs(u *types.Interface) bool {
	for m := range u.Methods() {
		if isLegacy(m) && shapeOf(m) != noShape {
			return true
		}
	}
	return false
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// shape is the method of the legacy interface that a signature equals.
type shape uint8

const (
	noShape shape = iota
	shapeEvent
	shapeEventf
	shapeAnnotated
	shapeNew // of events.k8s.io/v1
	shapeNewAnnotated
)

// parameters are the types of the methods that emit events, in their order.
var parameters = map[string]shape{
	"Event(Object, string, string, string)":                                                     shapeEvent,
	"Eventf(Object, string, string, string, []any)":                                             shapeEventf,
	"AnnotatedEventf(Object, map[string]string, string, string, string, []any)":                 shapeAnnotated,
	"Eventf(Object, Object, string, string, string, string, []any)":                             shapeNew,
	"AnnotatedEventf(Object, Object, map[string]string, string, string, string, string, []any)": shapeNewAnnotated,
}

// shapeOf returns the shape of a method by its name and its types. Names of parameters
// do not matter.
func shapeOf(f *types.Func) shape {
	if s := anyShape(f); s < shapeNew {
		return s
	}
	return noShape
}

func anyShape(f *types.Func) shape {
	sig, ok := f.Type().(*types.Signature)
	if !ok || sig.Recv() == nil || sig.Results().Len() != 0 || sig.Params().Len() < 4 || sig.Params().Len() > 8 {
		return noShape
	}
	var list []string
	for v := range sig.Params().Variables() {
		t := types.TypeString(types.Unalias(v.Type()), nil)
		t = strings.ReplaceAll(t, "interface{}", "any")
		list = append(list, strings.TrimPrefix(t, runtimePath+"."))
	}
	return parameters[f.Name()+"("+strings.Join(list, ", ")+")"]
}

func isNamed(t types.Type, path, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path
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

// SignatureOf returns the parameters of a method of a recorder, legacy or new. It returns
// false for other functions.
func SignatureOf(f *types.Func) (Signature, bool) {
	switch anyShape(f) {
	case shapeEvent:
		return Signature{Related: -1, Reason: 2, Action: -1, Note: 3, Legacy: true}, true
	case shapeEventf:
		return Signature{Related: -1, Reason: 2, Action: -1, Note: 3, Format: true, Legacy: true}, true
	case shapeAnnotated:
		return Signature{Related: -1, Reason: 3, Action: -1, Note: 4, Format: true, Legacy: true}, true
	case shapeNew:
		return Signature{Related: 1, Reason: 3, Action: 4, Note: 5, Format: true}, true
	case shapeNewAnnotated:
		return Signature{Related: 1, Reason: 4, Action: 5, Note: 6, Format: true}, true
	}
	return Signature{}, false
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

// IsOurs reports whether a package is one of this project.
func IsOurs(path string) bool { return path == projectPath || strings.HasPrefix(path, projectPath+"/") }

// IsLegacyMethod reports whether a function is a method of the legacy recorder that emits an
// event.
func IsLegacyMethod(f *types.Func) bool { return isLegacy(f) && shapeOf(f) != noShape }
