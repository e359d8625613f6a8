// Package conformance compares this recorder with what client-go's recorders
// promise: their names, and what they do.
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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	eventseries "github.com/eventseries/eventseries/events"
)

// A program that changes its import finds every name again. When client-go gets a
// new one, this fails.
func TestEveryNameOfClientGoIsThere(t *testing.T) {
	theirs := exported(t, "k8s.io/client-go/tools/events")
	ours := exported(t, "github.com/eventseries/eventseries/events")
	require.Greater(t, len(theirs), 10)
	for name, kind := range theirs {
		assert.Equal(t, kind, ours[name], name)
	}
}

// What is of the same type in both packages fits where the other is expected.
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
	// NewBroadcaster returns more than client-go's, which fits where the result is
	// used and not where the function is.
	_ events.EventBroadcaster                                   = eventseries.NewBroadcaster(nil)
	_ func(kubernetes.Interface) events.EventBroadcasterAdapter = eventseries.NewEventBroadcasterAdapter
)

// exported returns the exported names of a package, and what they are.
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
