package analyzers

import (
	"go/ast"
	"go/types"
	"regexp"
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
				groups := l.markers(f, g, t)
				isCluster := marked(groups, clusterMarker)
				if !isCluster && !marked(groups, objectMarker) {
					continue
				}
				if o := l.TypesInfo.Defs[t.Name]; o != nil && o.Parent() == l.Pkg.Scope() {
					l.ExportObjectFact(o, &scoped{isCluster})
				}
			}
		}
	}
}

// markers returns the comments that belong to a type: its documentation, and the group
// above it, which tools read, too.
func (l *linter) markers(f *ast.File, g *ast.GenDecl, t *ast.TypeSpec) (groups []*ast.CommentGroup) {
	doc := g.Doc
	if t.Doc != nil {
		doc = t.Doc
	}
	start := g.Pos()
	if doc != nil {
		groups = append(groups, doc)
		start = doc.Pos()
	}
	line := l.Fset.Position(start).Line
	for _, c := range f.Comments {
		if end := l.Fset.Position(c.End()).Line; c != doc && end < line && end >= line-2 {
			groups = append(groups, c)
		}
	}
	return groups
}

func marked(groups []*ast.CommentGroup, marker *regexp.Regexp) bool {
	for _, g := range groups {
		for _, c := range g.List {
			if marker.MatchString(c.Text) {
				return true
			}
		}
	}
	return false
}

// clusterKinds are the kinds of k8s.io/api and of its aggregated APIs without a namespace,
// by group.
var clusterKinds = map[string]string{
	"core":                  "Node Namespace PersistentVolume ComponentStatus",
	"rbac":                  "ClusterRole ClusterRoleBinding",
	"storage":               "StorageClass VolumeAttachment CSINode CSIDriver VolumeAttributesClass",
	"certificates":          "CertificateSigningRequest ClusterTrustBundle",
	"scheduling":            "PriorityClass",
	"node":                  "RuntimeClass",
	"networking":            "IngressClass IPAddress ServiceCIDR",
	"flowcontrol":           "FlowSchema PriorityLevelConfiguration",
	"admissionregistration": "MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
	"resource":              "DeviceClass ResourceSlice DeviceTaintRule",
	"apiserverinternal":     "StorageVersion",
	"storagemigration":      "StorageVersionMigration",
	"apiextensions":         "CustomResourceDefinition",
	"apiregistration":       "APIService",
}

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
	for kind := range strings.FieldsSeq(clusterKinds[group]) {
		if kind == n.Obj().Name() {
			return cluster
		}
	}
	if n.Obj().Name() == "ObjectReference" {
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
