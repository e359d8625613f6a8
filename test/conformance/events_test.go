// Package conformance runs the same tests with the recorders of client-go and of
// this project. Where a comment says "Different on purpose", they must differ.
package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"

	eventseries "github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
)

type emission struct {
	regarding, related              runtime.Object
	annotations                     map[string]string
	eventtype, reason, action, note string
	args                            []any
}

func (e emission) emit(to events.EventRecorder) {
	to.(events.AnnotatedEventRecorder).AnnotatedEventf(e.regarding, e.related, e.annotations, e.eventtype, e.reason, e.action, e.note, e.args...)
}

// emissions are those that both recorders accept.
func emissions(t *testing.T) map[string]emission {
	t.Helper()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1", ResourceVersion: "7"}
	}
	pod := &corev1.Pod{ObjectMeta: meta("ns", "a")}
	container, err := reference.GetPartialReference(scheme.Scheme, pod, "spec.containers{main}")
	require.NoError(t, err)
	node := &corev1.Node{ObjectMeta: meta("", "node-1")}
	about := func(regarding, related runtime.Object) emission {
		return emission{regarding: regarding, related: related, eventtype: "Normal", reason: "Started", action: "Starting", note: "it runs"}
	}
	all := map[string]emission{
		"Pod":                          about(pod, nil),
		"part of an object":            about(container, container),
		"object with its own kind":     about(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Capsule"}, ObjectMeta: pod.ObjectMeta}, nil),
		"cluster-scoped object":        about(node, nil),
		"invalid name for an Event":    about(&networkingv1.IPAddress{ObjectMeta: meta("", "2001:db8::42")}, nil),
		"object with the longest name": about(&corev1.Pod{ObjectMeta: meta("ns", strings.Repeat("x", 253))}, nil),
		"empty reference":              about(&corev1.ObjectReference{}, nil),
		"related object not in scheme": about(pod, &unknown{}),
	}
	formatted := about(pod, node)
	formatted.eventtype, formatted.note, formatted.args = "Warning", "no room on %s: %d%%", []any{"node-1", 95}
	all["related object and arguments"] = formatted
	annotated := about(pod, nil)
	annotated.annotations = map[string]string{"example.com/a": "b"}
	all["annotations"] = annotated
	lower := about(pod, nil)
	lower.reason, lower.action = "started", "starting"
	all["reason and action in lower case"] = lower
	return all
}

type unknown struct{ corev1.Pod }

// TestEventsAreEqual compares the Events of both recorders. Different on purpose:
//
//   - Names end in the hash of the key, not in the time, so that a restarted
//     process finds the Event.
//   - Events about cluster-scoped objects are in kube-system, not in default.
//     [eventseries.Options.ClusterNamespace] changes that.
//   - A label has the UID of the related object.
//   - References have no resourceVersion, or else every change of an object would
//     start another Event.
func TestEventsAreEqual(t *testing.T) {
	for name, e := range emissions(t) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				theirs := startProgram(t, "client-go")
				e.emit(theirs.recorder)
				synctest.Wait()
				ours := startProgram(t, "eventseries")
				e.emit(ours.recorder)
				synctest.Wait()

				want, got := theirs.only(t), ours.only(t)
				assert.Equal(t, controller, want.ReportingController)
				assert.True(t, strings.HasPrefix(want.ReportingInstance, controller+"-"), want.ReportingInstance)
				assert.Equal(t, e.related != nil && name != "related object not in scheme", got.Related != nil)
				assert.Empty(t, apivalidation.NameIsDNSSubdomain(got.Name, false), got.Name)
				assert.NotEqual(t, want.Name, got.Name)
				got.Name = want.Name
				if want.Regarding.Namespace == "" {
					assert.Equal(t, metav1.NamespaceDefault, want.Namespace)
					assert.Equal(t, metav1.NamespaceSystem, got.Namespace)
					got.Namespace = want.Namespace
				}
				want.Regarding.ResourceVersion = ""
				if want.Related != nil {
					want.Related.ResourceVersion = ""
				}
				if got.Related != nil {
					assert.Equal(t, map[string]string{series.LabelRelatedUID: string(got.Related.UID)}, got.Labels)
				}
				got.Labels, got.ManagedFields = want.Labels, want.ManagedFields
				assert.True(t, want.EventTime.Equal(&got.EventTime), "no time has passed")
				got.EventTime = want.EventTime
				assert.Equal(t, want, got)
			})
		})
	}
}

// TestEveryNameOfClientGoExists fails when client-go exports a new name. A program
// can thus replace its import.
func TestEveryNameOfClientGoExists(t *testing.T) {
	for pkg, ours := range map[string]string{"events": "events", "record": "compat/record"} {
		theirNames := exported(t, "k8s.io/client-go/tools/"+pkg)
		ourNames := exported(t, "github.com/eventseries/eventseries/"+ours)
		require.Greater(t, len(theirNames), 10)
		for name, object := range theirNames {
			if assert.Contains(t, ourNames, name) {
				assert.Equal(t, object.Kind, ourNames[name].Kind, name)
			}
		}
	}
}

// TestRecordHasTheTypesOfClientGo requires that the types of compat/record are aliases, and
// the functions have the signatures of client-go. So a program can use values and
// functions of one package where the other is expected.
func TestRecordHasTheTypesOfClientGo(t *testing.T) {
	ours := exported(t, "github.com/eventseries/eventseries/compat/record")
	for name, object := range exported(t, "k8s.io/client-go/tools/record") {
		if name == "BroadcasterOption" {
			continue // of client-go's private type
		}
		switch decl := ours[name].Decl.(type) {
		case *ast.TypeSpec:
			assert.True(t, decl.Assign.IsValid(), name)
			assert.Equal(t, "record."+name, types.ExprString(decl.Type))
		case *ast.FuncDecl:
			assert.Equal(t, signature(object.Decl.(*ast.FuncDecl)), signature(decl), name)
		default:
			assert.Failf(t, "unexpected declaration", "%s: %T", name, decl)
		}
	}
}

func signature(f *ast.FuncDecl) (all []string) {
	for _, list := range []*ast.FieldList{f.Type.Params, f.Type.Results} {
		for _, field := range list.List {
			for range max(1, len(field.Names)) {
				all = append(all, types.ExprString(field.Type))
			}
		}
		all = append(all, ";")
	}
	return all
}

// The types of both packages are interchangeable.
var (
	_ events.EventSink                   = (*eventseries.EventSinkImpl)(nil)
	_ events.EventBroadcaster            = (*eventseries.Broadcaster)(nil)
	_ events.EventBroadcaster            = eventseries.EventBroadcaster(nil)
	_ events.EventRecorder               = eventseries.EventRecorder(nil)
	_ events.EventRecorderLogger         = eventseries.EventRecorderLogger(nil)
	_ events.AnnotatedEventRecorder      = eventseries.AnnotatedEventRecorder(nil)
	_ eventseries.AnnotatedEventRecorder = events.AnnotatedEventRecorder(nil)
	_ eventseries.AnnotatedEventRecorder = (*events.FakeRecorder)(nil)
	_ eventseries.EventSink              = events.EventSink(nil)
	_ events.EventBroadcasterAdapter     = eventseries.EventBroadcasterAdapter(nil)
	_ *events.FakeRecorder               = eventseries.NewFakeRecorder(0)
	// NewBroadcaster returns a type with more methods, so its result is
	// interchangeable but not the function.
	_ events.EventBroadcaster                                   = eventseries.NewBroadcaster(nil)
	_ func(kubernetes.Interface) events.EventBroadcasterAdapter = eventseries.NewEventBroadcasterAdapter
)

func exported(t *testing.T, pkg string) map[string]*ast.Object {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
	require.NoError(t, err)
	names := make(map[string]*ast.Object)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for name, object := range file.Scope.Objects {
			if ast.IsExported(name) {
				names[name] = object
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
				uid := apitypes.UID(name)
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
