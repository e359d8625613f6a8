// Package conformance runs the same tests with the recorders of client-go and of
// this project. Where a comment says "Different on purpose", they must differ.
package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	eventseries "github.com/eventseries/eventseries/events"
)

// TestEveryNameOfClientGoExists fails when client-go exports a new name. A program
// can thus replace its import.
func TestEveryNameOfClientGoExists(t *testing.T) {
	theirs := exported(t, "k8s.io/client-go/tools/events")
	ours := exported(t, "github.com/eventseries/eventseries/events")
	require.Greater(t, len(theirs), 10)
	for name, kind := range theirs {
		assert.Equal(t, kind, ours[name], name)
	}
}

// The types of both packages are interchangeable.
var (
	_ events.EventSink               = (*eventseries.EventSinkImpl)(nil)
	_ events.EventBroadcaster        = (*eventseries.Broadcaster)(nil)
	_ events.EventBroadcaster        = eventseries.EventBroadcaster(nil)
	_ events.EventRecorder           = eventseries.EventRecorder(nil)
	_ events.EventRecorderLogger     = eventseries.EventRecorderLogger(nil)
	_ events.AnnotatedEventRecorder  = eventseries.AnnotatedEventRecorder(nil)
	_ eventseries.EventSink          = events.EventSink(nil)
	_ events.EventBroadcasterAdapter = eventseries.EventBroadcasterAdapter(nil)
	_ *events.FakeRecorder           = eventseries.NewFakeRecorder(0)
	// NewBroadcaster returns a type with more methods, so its result is
	// interchangeable but not the function.
	_ events.EventBroadcaster                                   = eventseries.NewBroadcaster(nil)
	_ func(kubernetes.Interface) events.EventBroadcasterAdapter = eventseries.NewEventBroadcasterAdapter
)

func exported(t *testing.T, pkg string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
	require.NoError(t, err)
	names := make(map[string]string)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.IsExported() {
					names[decl.Name.Name] = "func"
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							names[spec.Name.Name] = "type"
						}
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() {
								names[name.Name] = decl.Tok.String()
							}
						}
					}
				}
			}
		}
	}
	return names
}

func TestGetFieldSelector(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	for _, version := range []schema.GroupVersion{
		eventsv1.SchemeGroupVersion, eventsv1beta1.SchemeGroupVersion, corev1.SchemeGroupVersion, {Version: "v1alpha1"},
	} {
		for name, kind := range map[string]schema.GroupVersionKind{"": {}, "web": deployment} {
			t.Run(version.String()+" "+name, func(t *testing.T) {
				uid := types.UID(name)
				want, wantErr := events.GetFieldSelector(version, kind, name, uid)
				got, err := eventseries.GetFieldSelector(version, kind, name, uid)
				if wantErr != nil {
					require.Error(t, err)
					assert.Nil(t, got)
					return
				}
				require.NoError(t, err)
				assert.ElementsMatch(t, want.Requirements(), got.Requirements())
			})
		}
	}
}
