package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/eventseries/eventseries/query"
)

// filters are the flags that select series.
type filters struct {
	allNamespaces                                bool
	about                                        []string
	controllers, reasons, actions, types, states []string
	instances, nodes                             []string
	since, until, began, note                    string
	related                                      bool
	labelSelector, fieldSelector                 string
}

func (f *filters) addTo(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "Select series of all namespaces")
	flags.StringSliceVar(&f.controllers, "controller", nil, "Select series that one of these controllers reported")
	flags.StringSliceVar(&f.instances, "instance", nil, "Select series that one of these instances of a controller reported, such as kube-proxy-worker-3, or its host, such as worker-3")
	flags.StringSliceVar(&f.nodes, "node", nil, "Select series that one of these Nodes reported, or that are about it")
	flags.StringSliceVar(&f.reasons, "reason", nil, "Select series with one of these reasons")
	flags.StringSliceVar(&f.actions, "action", nil, "Select series with one of these actions")
	flags.StringSliceVar(&f.states, "state", nil, "Select series with one of these states: "+strings.Join(stateNames(), ", "))
	f.addCommon(flags)
	flags.StringVarP(&f.labelSelector, "selector", "l", "", "Selector (label query) to filter Events on")
	flags.StringVar(&f.fieldSelector, "field-selector", "", "Selector (field query) to filter Events on, such as regarding.kind=Pod")
}

// addCommon adds the flags that timelines have, too.
func (f *filters) addCommon(flags *pflag.FlagSet) {
	flags.BoolVar(&f.related, "related", false, "Select series in which an object is the related one, too. This reads the Events of all namespaces")
	flags.StringSliceVar(&f.types, "type", nil, "Select series with one of these types: Normal, Warning")
	flags.StringVar(&f.note, "note", "", "Select series whose first or latest note contains this text, in any case")
	flags.StringVar(&f.since, "since", "", "Select series that occurred since then: how long ago, such as 1h, or a time: RFC 3339, or local without a zone")
	flags.StringVar(&f.until, "until", "", "Select series that began until then: how long ago, or a time")
	flags.StringVar(&f.began, "began", "", "Select series that began since then: how long ago, or a time")
}

// addFor adds the flag --for of kubectl events.
func (f *filters) addFor(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.about, "for", nil, "Select series about one of these objects: KIND/NAME")
}

// query returns the query of the flags, and for what targets name. namespace is the one to
// which the query is limited, or empty.
func (f *filters) query(ctx context.Context, e *environment, targets []target, at time.Time) (q query.Query, namespace string, err error) {
	q = query.Query{
		At: at, Controllers: f.controllers, Instances: f.instances, Nodes: f.nodes, Reasons: f.reasons, Actions: f.actions,
		Note: f.note, LabelSelector: f.labelSelector, FieldSelector: f.fieldSelector,
	}
	if !f.related {
		q.Role = query.Regarding
	}
	if q.Types, err = choices("--type", f.types, []string{corev1.EventTypeNormal, corev1.EventTypeWarning}); err != nil {
		return q, "", err
	}
	states, err := choices("--state", f.states, stateNames())
	if err != nil {
		return q, "", err
	}
	for _, name := range states {
		q.States = append(q.States, query.States()[slices.Index(stateNames(), name)])
	}
	if q.Since, err = parseTime("--since", f.since, at); err != nil {
		return q, "", err
	}
	if q.Until, err = parseTime("--until", f.until, at); err != nil {
		return q, "", err
	}
	if q.Began, err = parseTime("--began", f.began, at); err != nil {
		return q, "", err
	}
	if !q.Until.IsZero() && q.Until.Before(q.Since) {
		return q, "", fmt.Errorf("--until %q is before --since %q", f.until, f.since)
	}
	if _, err := labels.Parse(f.labelSelector); err != nil {
		return q, "", fmt.Errorf("--selector %q: %w: want label queries such as app=web,tier!=front", f.labelSelector, err)
	}
	if _, err := fields.ParseSelector(f.fieldSelector); err != nil {
		return q, "", fmt.Errorf("--field-selector %q: %w: want field queries such as regarding.kind=Pod,type!=Normal", f.fieldSelector, err)
	}
	for _, about := range f.about {
		t, err := parseTarget(about)
		if err != nil {
			return q, "", fmt.Errorf("--for %w", err)
		}
		targets = append(targets, t)
	}

	if !f.allNamespaces {
		if namespace, err = e.namespace(); err != nil {
			return q, "", err
		}
	}
	if len(targets) == 0 {
		if namespace != "" {
			q.Namespaces = []string{namespace}
		}
		return q, namespace, nil
	}
	var chosen []string
	if name := *e.flags.Namespace; name != "" && !f.allNamespaces {
		chosen = []string{name}
	}
	if len(targets) == 1 && targets[0].name == "" {
		switch object, err := e.named(ctx, targets[0].kind, chosen, at); {
		case err != nil:
			return q, "", err
		case object != nil:
			q.Objects = []query.Object{object.object}
			if object.related {
				q.Role = query.RegardingOrRelated
			}
			return q, object.object.Namespace, nil
		}
	}
	// The reader knows where Events about the objects are.
	q.Objects, err = e.objects(ctx, targets, namespace)
	if unknown := (*unknownKindError)(nil); errors.As(err, &unknown) {
		err = e.explain(ctx, unknown, targets[0], at)
	}
	return q, namespace, err
}

func choices(flag string, values, valid []string) ([]string, error) {
	var chosen []string
	for _, value := range values {
		i := slices.IndexFunc(valid, func(v string) bool { return strings.EqualFold(v, value) })
		if i < 0 {
			return nil, fmt.Errorf("%s %q: want one of %s", flag, value, strings.Join(valid, ", "))
		}
		chosen = append(chosen, valid[i])
	}
	return chosen, nil
}

func stateNames() []string {
	var all []string
	for _, state := range query.States() {
		all = append(all, state.String())
	}
	return all
}

func names[T ~string](values []T) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = string(value)
	}
	return all
}
