package analyzers

import (
	_ "embed" // clusterkinds.txt
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

// scoped is a fact about a type with objects of a known scope.
type scoped struct{ Cluster bool }

func (*scoped) AFact() {}
func (s *scoped) String() string {
	if s.Cluster {
		return "clusterScoped"
	}
	return "namespaced"
}

// Markers of kubebuilder and of the generators of Kubernetes. Objects are namespaced
// unless one of them says otherwise.
var (
	clusterMarker = regexp.MustCompile(`\+kubebuilder:resource:.*\bscope="?Cluster\b|\+genclient:nonNamespaced\b`)
	objectMarker  = regexp.MustCompile(`\+kubebuilder:resource\b|\+kubebuilder:object:root=true\b|\+genclient\b`)
)

// exportScopes exports the facts of the types with a marker.
func (l *linter) exportScopes() {
	for _, f := range l.Files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				t, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				text := l.comments(f, g, t)
				isCluster := clusterMarker.MatchString(text)
				if !isCluster && !objectMarker.MatchString(text) {
					continue
				}
				if o := l.TypesInfo.Defs[t.Name]; o != nil && o.Parent() == l.Pkg.Scope() {
					l.ExportObjectFact(o, &scoped{isCluster})
				}
			}
		}
	}
}

// comments returns the comments above a type: its documentation, and the group above it, which
// tools read, too.
func (l *linter) comments(f *ast.File, g *ast.GenDecl, t *ast.TypeSpec) (text string) {
	line := l.Fset.Position(g.Pos()).Line
	if g.Lparen.IsValid() {
		line = l.Fset.Position(t.Pos()).Line
	}
	for _, group := range slices.Backward(f.Comments) {
		if end := l.Fset.Position(group.End()).Line; end < line && end >= line-2 {
			line = l.Fset.Position(group.Pos()).Line
			for _, c := range group.List {
				text += c.Text + "\n"
			}
		}
	}
	return text
}

// clusterKinds has a line for each group of k8s.io/api and of its aggregated APIs, with the kinds
// that have no namespace.
//
//go:embed clusterkinds.txt
var clusterKinds string

// scope is that of a type.
type scope uint8

const (
	unknown scope = iota
	cluster
	namespaced
)

func (l *linter) scopeOf(e ast.Expr) scope {
	t := types.Unalias(l.TypesInfo.TypeOf(e))
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	n, ok := t.(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return unknown
	}
	if _, ok := n.Underlying().(*types.Struct); !ok {
		return unknown
	}
	if s := new(scoped); l.ImportObjectFact(n.Obj(), s) {
		if s.Cluster {
			return cluster
		}
		return namespaced
	}
	path := n.Obj().Pkg().Path()
	group, ok := strings.CutPrefix(path, "k8s.io/api/")
	if !ok {
		switch {
		case strings.HasPrefix(path, "k8s.io/apiextensions-apiserver/pkg/apis/"):
			group = "apiextensions"
		case strings.HasPrefix(path, "k8s.io/kube-aggregator/pkg/apis/"):
			group = "apiregistration"
		default:
			return unknown
		}
	}
	group, _, _ = strings.Cut(group, "/")
	_, kinds, _ := strings.Cut("\n"+clusterKinds, "\n"+group+" ")
	kinds, _, _ = strings.Cut(kinds, "\n")
	switch {
	case slices.Contains(strings.Fields(kinds), n.Obj().Name()):
		return cluster
	case n.Obj().Name() == "ObjectReference":
		return unknown
	}
	return namespaced
}

// scopes reports a cluster-scoped regarding object with a namespaced related one.
func (l *linter) scopes(regarding, related ast.Expr) {
	if l.scopeOf(regarding) == cluster && l.scopeOf(related) == namespaced {
		l.Reportf(regarding.Pos(), "the regarding object is cluster-scoped and the related one is not: swap them, so that the users of the namespace can read the Event")
	}
}
