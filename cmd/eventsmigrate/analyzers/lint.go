// Package analyzers contains an analyzer for drivers of [golang.org/x/tools/go/analysis].
package analyzers

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// Lint reports events that are hard to find, to count, or to understand, with any recorder.
var Lint = &analysis.Analyzer{
	Name: "eventslint",
	Doc: `find mistakes in the events that a program emits

It reports reasons and actions that are variable, that take any number of values (from
messages, numbers, and names of objects), that are equal, or that are not in
UpperCamelCase; notes with a variable format or built with Sprintf; a related object that
is namespaced although the regarding one is not; broadcasters that nothing shuts down; caches
and rate limiters around a recorder; and names of recorders that the API server rejects.`,
	URL: "https://github.com/eventseries/eventseries/blob/main/cmd/eventsmigrate/README.md#lint",
	Run: lint,
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

type linter struct {
	*analysis.Pass

	within   ast.Decl
	assigned map[*types.Var][]ast.Expr
}

func lint(pass *analysis.Pass) (any, error) {
	l := &linter{Pass: pass}
	l.readAssignments()
	for _, f := range pass.Files {
		if ast.IsGenerated(f) {
			continue
		}
		for _, d := range f.Decls {
			l.within = d
			forwards := l.isRecorder(d)
			ast.PreorderStack(d, nil, func(n ast.Node, stack []ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					l.call(call, forwards, stack)
				}
				return true
			})
		}
	}
	l.broadcasters()
	return nil, nil
}

func (l *linter) call(call *ast.CallExpr, forwards bool, stack []ast.Node) {
	l.controller(call)
	s, ok := move.Emission(l.TypesInfo, call)
	if !ok || len(call.Args) <= s.Note {
		return
	}
	note := call.Args[s.Note:]
	forwards = forwards || s.Action >= 0 && l.passesOn(call.Args[s.Reason], call.Args[s.Action])
	l.name("reason", call.Args[s.Reason], note, forwards)
	if s.Action >= 0 {
		l.name("action", call.Args[s.Action], note, forwards)
		r, a := l.text(call.Args[s.Reason]), l.text(call.Args[s.Action])
		if r != "" && r == a {
			l.Reportf(call.Args[s.Action].Pos(), "the action equals the reason %q: the action says what the controller did, the reason says why", r)
		}
	}
	l.note(call, s, forwards)
	l.guards(call, call.Args[s.Reason], stack)
	if s.Related >= 0 {
		l.scopes(call.Args[0], call.Args[s.Related])
	}
}

// qualified matches the names that the API server accepts for a reporting controller, and allowed
// their characters.
var (
	qualified = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	allowed   = regexp.MustCompile(`^([-A-Za-z0-9_./]|%[-+ #0-9.]*[a-z])*$`)
)

// controller reports the name of a new recorder that the recorder must change, and one that omits
// what events have.
func (l *linter) controller(call *ast.CallExpr) {
	f, ok := typeutil.Callee(l.TypesInfo, call).(*types.Func)
	if ok && f.Name() == "NewEventRecorderAdapter" && move.IsRecorderPackage(f.Pkg().Path()) {
		l.Reportf(call.Pos(), "the adapter of a legacy recorder omits the related object and the action: pass a recorder of package events")
	}
	if !ok || !makers.MatchString(f.Name()) || len(call.Args) == 0 || !move.HasMethod(l.TypesInfo.TypeOf(call), "Eventf") || l.isTest(call) {
		return
	}
	name := call.Args[min(1, len(call.Args)-1)]
	for n := range ast.Preorder(name) {
		if kv, ok := n.(*ast.KeyValueExpr); ok && types.ExprString(kv.Key) == "Component" {
			name = kv.Value // of the source
		}
	}
	is := qualified // the whole name
	for n := range ast.Preorder(name) {
		e, ok := n.(ast.Expr)
		if _, isSource := n.(*ast.CompositeLit); isSource || !ok {
			return // without a component
		}
		if s := l.text(e); s != "" && !is.MatchString(s) {
			l.Reportf(e.Pos(), "the API server accepts no reporting controller %q, and recorders of this project change the name: check selectors by source and reportingComponent", s)
			return
		}
		is = allowed
	}
}

// makers are the methods that return a recorder with a name.
var makers = regexp.MustCompile(`^(NewRecorder|GetEventRecorder)(For|WithOptions)?$`)

// isRecorder reports whether a declaration is a method of a recorder, which passes on events.
func (l *linter) isRecorder(d ast.Decl) bool {
	f, ok := d.(*ast.FuncDecl)
	if ok {
		_, ok = move.SignatureOf(l.TypesInfo.Defs[f.Name].(*types.Func))
	}
	return ok
}

// passesOn reports whether only the callers of a function know the reason and the action.
func (l *linter) passesOn(reason, action ast.Expr) bool {
	f, _ := l.within.(*ast.FuncDecl)
	return move.Forwards(l.TypesInfo, f, reason) && move.Forwards(l.TypesInfo, f, action) &&
		move.ObjectOf(l.TypesInfo, reason) != move.ObjectOf(l.TypesInfo, action)
}

func (l *linter) text(e ast.Expr) string { return move.ConstantOf(l.TypesInfo, l.within, e) }

// name checks a reason or an action.
func (l *linter) name(what string, e ast.Expr, note []ast.Expr, forwards bool) {
	if s := l.text(e); s != "" || l.TypesInfo.Types[e].Value != nil {
		if s == "" {
			l.Reportf(e.Pos(), "the %s is empty", what)
		} else if !camelCase.MatchString(s) {
			l.Reportf(e.Pos(), "the %s %q is not in UpperCamelCase", what, s)
		}
		return
	}
	if forwards {
		return
	}
	text := l.unbounded(e, map[*types.Var]bool{})
	if o := move.ObjectOf(l.TypesInfo, e); o != nil && slices.ContainsFunc(note, func(n ast.Expr) bool { return move.ObjectOf(l.TypesInfo, n) == o }) {
		text = "is the message: each message begins another series, so use a constant"
	}
	if text != "" {
		l.Report(analysis.Diagnostic{Pos: e.Pos(), Category: "series", Message: fmt.Sprintf("the %s %s", what, text)})
		return
	}
	text = "is variable: programs and people search for it, so use a constant"
	if owner, field := move.FieldOf(l.TypesInfo, e); owner != "" {
		text = fmt.Sprintf("is the field %s of %s: programs and people search for it, so check that it gets only constants", field, owner)
	} else if l.isEnum(e) {
		return
	}
	l.Report(analysis.Diagnostic{Pos: e.Pos(), Category: l.category(e, "name"), Message: fmt.Sprintf("the %s %s", what, text)})
}

// isEnum reports whether an expression converts a variable of a type that has constants.
func (l *linter) isEnum(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) != 1 || !l.TypesInfo.Types[call.Fun].IsType() || move.ObjectOf(l.TypesInfo, call.Args[0]) == nil {
		return false
	}
	t, ok := types.Unalias(l.TypesInfo.TypeOf(call.Args[0])).(*types.Named)
	return ok && t.Obj().Pkg() != nil && slices.ContainsFunc(t.Obj().Pkg().Scope().Names(), func(name string) bool {
		c, ok := t.Obj().Pkg().Scope().Lookup(name).(*types.Const)
		return ok && types.Identical(c.Type(), t)
	})
}

// category returns the category of a finding, which is another one in wrappers, with the name,
// and with the parameters that can be the related object and the action.
func (l *linter) category(e ast.Expr, otherwise string) string {
	f, _ := l.within.(*ast.FuncDecl)
	if !move.Forwards(l.TypesInfo, f, e) {
		return otherwise
	}
	name := f.Name.Name
	if list := l.ignored(f); len(list) > 0 {
		name += " (which ignores " + strings.Join(list, " and ") + ")"
	}
	return "wrapper " + name
}

// ignored returns the strings and the objects that a function receives and does not use, and
// those of the literals in it.
func (l *linter) ignored(f *ast.FuncDecl) (list []string) {
	used, params := map[types.Object]bool{}, f.Type.Params.List
	for n := range ast.Preorder(f) {
		switch n := n.(type) {
		case *ast.Ident:
			used[l.TypesInfo.Uses[n]] = true
		case *ast.FuncLit:
			params = append(slices.Clip(params), n.Type.Params.List...)
		}
	}
	for _, p := range params {
		t := l.TypesInfo.TypeOf(p.Type)
		for _, name := range p.Names {
			if !used[l.TypesInfo.Defs[name]] && (move.IsObject(t) || types.Identical(t.Underlying(), types.Typ[types.String])) {
				list = append(list, name.Name+" "+types.ExprString(p.Type))
			}
		}
	}
	return list
}

// Sources of strings that take any number of values, the worst one first.
const (
	ofObject  = "contains the name of an object: each object begins another series, so use a constant, and name the object in the note"
	ofNumber  = "contains a number: each value begins another series, so use a constant"
	ofFormat  = "is formatted: each value begins another series, so use a constant"
	ofMessage = "comes from a message: each value begins another series, so use a constant"
)

// unbounded tells why an expression takes any number of values, or returns "". It follows
// local variables.
func (l *linter) unbounded(e ast.Expr, seen map[*types.Var]bool) string {
	found := map[string]bool{}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := typeutil.Callee(l.TypesInfo, n).(*types.Func); ok {
				found[callee(f)] = true
			}
		case *ast.SelectorExpr:
			if v, ok := l.TypesInfo.Uses[n.Sel].(*types.Var); ok && v.IsField() {
				found[ofField(v)] = true
				return false // the fields of an object are not the object
			}
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				found[ofFormat] = true
			}
		case *ast.Ident:
			if v, ok := l.TypesInfo.Uses[n].(*types.Var); ok && !seen[v] && v.Parent() != l.Pkg.Scope() {
				seen[v] = true
				for _, value := range l.assigned[v] {
					found[l.unbounded(value, seen)] = true
				}
			}
		}
		return true
	})
	for _, text := range []string{ofObject, ofNumber, ofMessage, ofFormat} {
		if found[text] {
			return text
		}
	}
	return ""
}

// callee tells why the result of a function takes any number of values, or returns "".
func callee(f *types.Func) string {
	switch name := f.FullName(); {
	case f.Name() == "Error" && f.Signature().Params().Len() == 0:
		return ofMessage
	case strings.HasPrefix(name, "fmt.S"):
		return ofFormat
	case strings.HasPrefix(name, "strconv."):
		return ofNumber
	case f.Signature().Recv() != nil && f.Signature().Params().Len() == 0 && f.Pkg() != nil && f.Pkg().Path() == metaPath &&
		isIdentity(strings.TrimPrefix(f.Name(), "Get")):
		return ofObject
	}
	return ""
}

const (
	metaPath  = "k8s.io/apimachinery/pkg/apis/meta/v1"
	typesPath = "k8s.io/apimachinery/pkg/types" // of NamespacedName
)

func ofField(v *types.Var) string {
	if v.Pkg() != nil && (v.Pkg().Path() == metaPath || v.Pkg().Path() == typesPath) && isIdentity(v.Name()) {
		return ofObject
	}
	return ""
}

func isIdentity(name string) bool {
	return slices.Contains([]string{"Name", "GenerateName", "Namespace", "UID", "ResourceVersion"}, name)
}

// readAssignments collects what the variables and fields get.
func (l *linter) readAssignments() {
	l.assigned = map[*types.Var][]ast.Expr{}
	add := func(name, value ast.Expr) {
		if v, ok := move.ObjectOf(l.TypesInfo, name).(*types.Var); ok {
			l.assigned[v] = append(l.assigned[v], value)
		}
	}
	for _, f := range l.Files {
		for n := range ast.Preorder(f) {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					add(n.Lhs[i], n.Rhs[i])
				}
			case *ast.ValueSpec:
				for i := range min(len(n.Names), len(n.Values)) {
					add(n.Names[i], n.Values[i])
				}
			case *ast.KeyValueExpr:
				if v, ok := move.ObjectOf(l.TypesInfo, n.Key).(*types.Var); ok && v.IsField() {
					add(n.Key, n.Value)
				}
			}
		}
	}
}

// note checks the note. In Event, it is no format.
func (l *linter) note(call *ast.CallExpr, s move.Signature, forwards bool) {
	note := call.Args[s.Note]
	last := len(call.Args) - 1
	if inner := move.Sprintf(l.TypesInfo, note); inner != nil && s.Format && last == s.Note {
		l.unwrap(note, note, inner)
		return
	}
	if s.Format && l.TypesInfo.Types[note].Value == nil && !forwards {
		d := analysis.Diagnostic{Pos: note.Pos(), End: note.End(), Category: l.category(note, "note"), Message: "the format of the note is variable: a % in it is read as a verb"}
		if last == s.Note && !call.Ellipsis.IsValid() {
			d.SuggestedFixes = []analysis.SuggestedFix{{
				Message:   `Use "%s"`,
				TextEdits: []analysis.TextEdit{{Pos: note.Pos(), End: note.Pos(), NewText: []byte(`"%s", `)}},
			}}
		}
		l.Report(d)
		return
	}
	if s.Format && last == s.Note+1 && l.text(note) == "%s" {
		if inner := move.Sprintf(l.TypesInfo, call.Args[last]); inner != nil {
			l.unwrap(note, call.Args[last], inner)
		}
	}
	if !s.Format && !forwards && move.Sprintf(l.TypesInfo, note) != nil {
		l.Report(analysis.Diagnostic{Pos: note.Pos(), End: note.End(), Category: "note", Message: "Sprintf builds the message: use Eventf"})
	}
}

// unwrap reports a note that e builds: the note itself, or the argument after it.
func (l *linter) unwrap(note, e ast.Expr, inner *ast.CallExpr) {
	edits := move.Unwrapped(e, inner)
	if note != e {
		edits = append(edits, analysis.TextEdit{Pos: note.Pos(), End: e.Pos()})
	}
	l.Report(analysis.Diagnostic{
		Pos: note.Pos(), End: e.End(), Category: "note", Message: "Sprintf builds the note: pass its arguments to the recorder",
		SuggestedFixes: []analysis.SuggestedFix{{Message: "Pass the arguments", TextEdits: edits}},
	})
}

// clusterKinds are the types of k8s.io/api whose objects have no namespace.
var clusterKinds = strings.Fields(`Node Namespace PersistentVolume ClusterRole ClusterRoleBinding StorageClass VolumeAttachment CSINode
	CSIDriver VolumeAttributesClass CertificateSigningRequest ClusterTrustBundle PriorityClass RuntimeClass IngressClass IPAddress
	ServiceCIDR FlowSchema PriorityLevelConfiguration MutatingWebhookConfiguration ValidatingWebhookConfiguration
	ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding DeviceClass
	ResourceSlice DeviceTaintRule StorageVersion StorageVersionMigration`)

// scopes reports a cluster-scoped regarding object with a namespaced related one.
func (l *linter) scopes(regarding, related ast.Expr) {
	kind := func(e ast.Expr) string {
		name, ok := strings.CutPrefix(strings.TrimPrefix(types.TypeString(types.Unalias(l.TypesInfo.TypeOf(e)), nil), "*"), "k8s.io/api/")
		if !ok {
			return "ObjectReference" // which can be any object
		}
		return name[strings.LastIndexByte(name, '.')+1:]
	}
	if other := kind(related); slices.Contains(clusterKinds, kind(regarding)) && !slices.Contains(clusterKinds, other) && other != "ObjectReference" {
		l.Reportf(regarding.Pos(), "the regarding object is cluster-scoped and the related one is not: swap them, so that the users of the namespace can read the Event")
	}
}
