package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/eventseries/eventseries/query"
	"github.com/eventseries/eventseries/series"
)

// target is an object as the arguments name it.
type target struct {
	kind string // such as pod, po, deployments.apps, or Pod
	name string // empty for all objects of the kind
	// container is that of a Pod, as the column OBJECT shows it. It is empty for all of them.
	container string
	// listed says that the name is one of several arguments after the kind.
	listed bool
}

// parseTargets parses arguments: KIND/NAME…, or KIND [NAME…]. One word without a slash is a kind
// here; see [environment.named].
func parseTargets(args []string) ([]target, error) {
	if len(args) == 0 {
		return nil, nil
	}
	var targets []target
	if !strings.Contains(args[0], "/") {
		for kind := range strings.SplitSeq(args[0], ",") {
			if kind == "" {
				return nil, fmt.Errorf("%q: want KIND/NAME, such as pod/checkout-0", args[0])
			}
			if len(args) == 1 {
				targets = append(targets, target{kind: kind})
			}
			for _, name := range args[1:] {
				if strings.Contains(name, "/") {
					return nil, fmt.Errorf("%q %q: want KIND NAME or KIND/NAME, and not both", args[0], name)
				}
				t := newTarget(kind, name)
				t.listed = true
				targets = append(targets, t)
			}
		}
		return targets, nil
	}
	for _, arg := range args {
		t, err := parseTarget(arg)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

func parseTarget(arg string) (target, error) {
	kind, name, ok := strings.Cut(arg, "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return target{}, fmt.Errorf("%q: want KIND/NAME, such as pod/checkout-0", arg)
	}
	t := newTarget(kind, name)
	if t.name == "" {
		return target{}, fmt.Errorf("%q: want KIND/NAME{CONTAINER}, such as pod/checkout-0{app}", arg)
	}
	return t, nil
}

// newTarget returns the target of a name, which can end with a container in braces.
func newTarget(kind, name string) target {
	t := target{kind: kind, name: name}
	if object, container, ok := strings.Cut(strings.TrimSuffix(name, "}"), "{"); ok {
		t.name, t.container = object, container
	}
	return t
}

// objects returns what selects targets. namespace is that of namespaced objects, or empty
// for all namespaces.
func (e *environment) objects(ctx context.Context, targets []target, namespace string) ([]query.Object, error) {
	var objects []query.Object
	known := make(map[string]query.Object)
	for _, t := range targets {
		object, ok := known[t.kind]
		if !ok {
			var err error
			if object, err = e.kind(ctx, t.kind, namespace); err != nil {
				return nil, err
			}
			known[t.kind] = object
		}
		object.Name, object.Container = t.name, t.container
		if !object.ClusterScoped {
			object.Namespace = namespace
		}
		if !slices.Contains(objects, object) {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// kind returns what selects the objects of a kind. It asks the server which kinds there are.
// Events can be about others: those of a definition that was deleted, or of another
// cluster. If the server does not tell, kind accepts any.
func (e *environment) kind(ctx context.Context, name, namespace string) (query.Object, error) {
	mapping, err := e.mapping(name)
	if err == nil {
		return query.Object{
			APIVersion:    mapping.GroupVersionKind.GroupVersion().String(),
			Kind:          mapping.GroupVersionKind.Kind,
			ClusterScoped: mapping.Scope.Name() == meta.RESTScopeNameRoot,
		}, nil
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return query.Object{}, err // no other request would reach the server
	}
	found, listErr := e.kindOfEvents(ctx, name, namespace)
	switch {
	case found != nil:
		return query.Object{APIVersion: found.APIVersion, Kind: found.Kind, ClusterScoped: found.Namespace == ""}, nil
	case listErr != nil:
		return query.Object{}, listErr
	case meta.IsNoMatchError(err):
		return query.Object{}, &unknownKindError{name}
	default:
		return query.Object{Kind: name}, nil
	}
}

// unknownKindError says that a word is no kind.
type unknownKindError struct{ name string }

// Error implements error.
func (e *unknownKindError) Error() string {
	return fmt.Sprintf("unknown kind %q: neither the resources of the server (kubectl api-resources) nor its Events have it", e.name)
}

// mapping returns the kind with a name: a kind, or a resource in singular, plural, or short,
// with or without its group.
func (e *environment) mapping(name string) (*meta.RESTMapping, error) {
	mapper, err := e.mapper()
	if err != nil {
		return nil, err
	}
	if kind, ok := shortNames[strings.ToLower(name)]; ok && e.offline() {
		name = kind
	}
	full, resource := schema.ParseResourceArg(strings.ToLower(name))
	gvk := schema.GroupVersionKind{}
	if full != nil {
		gvk, _ = mapper.KindFor(*full)
	}
	if gvk.Empty() {
		if gvk, err = mapper.KindFor(resource.WithVersion("")); err != nil {
			return nil, err
		}
	}
	return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// shortNames are those of kinds with events, for files and for servers that do not tell their kinds.
var shortNames = map[string]string{
	"cj": "CronJob", "deploy": "Deployment", "ds": "DaemonSet", "hpa": "HorizontalPodAutoscaler", "no": "Node", "ns": "Namespace",
	"po": "Pod", "pv": "PersistentVolume", "pvc": "PersistentVolumeClaim", "rc": "ReplicationController", "rs": "ReplicaSet",
	"sts": "StatefulSet", "svc": "Service",
}

// kindOfEvents returns an object of a kind from the Events in a namespace, and in those of
// cluster-scoped objects. It returns nil if there is none.
func (e *environment) kindOfEvents(ctx context.Context, name, namespace string) (*series.Reference, error) {
	reader, progress, err := e.reader(query.Options{OnWarning: func(error) {}})
	if err != nil {
		return nil, err
	}
	defer progress.clear()
	name, _, _ = strings.Cut(name, ".")
	if kind, ok := shortNames[strings.ToLower(name)]; ok {
		name = kind
	}
	var q query.Query
	if namespace != "" {
		q.Namespaces = []string{metav1.NamespaceSystem, metav1.NamespaceDefault, namespace} // an error names the last one
	}
	for item, err := range reader.List(ctx, q) {
		if err != nil {
			return nil, err
		}
		for _, ref := range []series.Reference{item.Key.Regarding, item.Key.Related} {
			if strings.EqualFold(ref.Kind, name) || strings.EqualFold(ref.Kind+"s", name) {
				return &ref, nil
			}
		}
	}
	return nil, nil
}
