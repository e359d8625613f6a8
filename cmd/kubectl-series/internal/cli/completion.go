package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/group"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/output"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
)

// Limits of a completion, because someone waits for it.
const (
	completionTimeout = 3 * time.Second
	completionPage    = 2000 // fewer requests than with the usual pages
)

type completion = func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective)

func completeFlags(e *environment, root *cobra.Command) {
	fixed := func(values ...string) completion {
		return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return withPrefix(values, prefix), cobra.ShellCompDirectiveNoFileComp
		}
	}
	formats := append([]string{"wide"}, output.Formats()...)
	flags := map[string]completion{
		"type":       fixed("Normal", "Warning"),
		"state":      fixed(stateNames()...),
		"color":      fixed("auto", "always", "never"),
		"time":       fixed(timeFormats...),
		"group-by":   fixed(group.All()...),
		"for":        completeObjects(e),
		"controller": e.completeValues((*query.Item).Controller),
		"instance":   e.completeValues(func(i *query.Item) string { return i.Key.ReportingInstance }),
		"node":       e.completeValues((*query.Item).Node),
		"reason":     e.completeValues(func(i *query.Item) string { return i.Event.Reason }),
		"action":     e.completeValues(func(i *query.Item) string { return i.Event.Action }),
		"namespace":  e.completeNamespaces,
		"context":    e.completeConfig("context"),
		"cluster":    e.completeConfig("cluster"),
		"user":       e.completeConfig("user"),
	}
	for _, c := range append(root.Commands(), root) {
		for name, complete := range flags {
			if c.Flag(name) != nil && (c == root || c.LocalNonPersistentFlags().Lookup(name) != nil) {
				must(c.RegisterFlagCompletionFunc(name, printable(complete)))
			}
		}
		if c.ValidArgsFunction != nil {
			c.ValidArgsFunction = printable(c.ValidArgsFunction)
		}
		order, format := fixed(orders()...), fixed(formats...)
		switch c.Name() {
		case "top":
			order, format = fixed(topOrderNames()...), fixed("json", "yaml")
		case "timeline":
			format = fixed(append(timelineFormats, formats[1:]...)...)
		}
		if c.Flags().Lookup("sort-by") != nil {
			must(c.RegisterFlagCompletionFunc("sort-by", order))
		}
		if c.Flags().Lookup("output") != nil {
			must(c.RegisterFlagCompletionFunc("output", format))
		}
	}
}

// printable leaves out what a shell should not print: Events can name objects as they like.
func printable(complete completion) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		values, directive := complete(c, args, prefix)
		return slices.DeleteFunc(values, func(value string) bool {
			value = strings.ReplaceAll(value, "\t", " ") // before a description
			return text.Clean(value) != value
		}), directive
	}
}

func withPrefix(values []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(s string) bool { return !strings.HasPrefix(s, prefix) })
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// each calls f for the Events in a namespace, or in all of them if it is empty, until the time is
// over. If there are objects, it calls f for the Events about them.
func (e *environment) each(c *cobra.Command, namespace string, objects []query.Object, f func(*query.Item)) {
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	quiet := *e
	quiet.ErrOut, quiet.chunkSize = io.Discard, completionPage
	reader, _, err := quiet.reader(query.Options{OnWarning: func(error) {}})
	if err != nil {
		return
	}
	q := query.Query{Objects: objects, Role: query.Regarding}
	if namespace != "" && len(objects) == 0 {
		q.Namespaces = []string{namespace}
	}
	for item, err := range reader.List(ctx, q) {
		if err != nil {
			return
		}
		f(item)
	}
}

// namespaceOf returns the namespace of a command, or "" for all.
func (e *environment) namespaceOf(c *cobra.Command) string {
	if all, err := c.Flags().GetBool("all-namespaces"); err == nil && all {
		return ""
	}
	namespace, err := e.namespace()
	if err != nil {
		return ""
	}
	return namespace
}

// completeValues completes a value that Events have: in the namespace that the caller chose, or in
// all of them, because the flag for the namespace can follow.
func (e *environment) completeValues(of func(*query.Item) string) completion {
	return func(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		values := sets.New[string]()
		collect := func(i *query.Item) {
			if v := of(i); v != "" && strings.HasPrefix(v, prefix) {
				values.Insert(v)
			}
		}
		e.each(c, *e.flags.Namespace, nil, collect)
		if len(values) == 0 {
			e.each(c, e.namespaceOf(c), nil, collect) // which the user may list
		}
		return sets.List(values), cobra.ShellCompDirectiveNoFileComp
	}
}

func completeEvents(e *environment) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var names []string
		e.each(c, e.namespaceOf(c), nil, func(i *query.Item) {
			if strings.HasPrefix(i.Name, prefix) && !slices.Contains(args, i.Name) {
				names = append(names, i.Name+"\t"+i.State.String()+" "+i.Event.Reason)
			}
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeObjects completes KIND/NAME: kinds from the server, and names from Events, because
// objects need other permissions.
func completeObjects(e *environment) completion {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		kind, _, ok := strings.Cut(prefix, "/")
		switch {
		case ok:
			return e.objectNames(c, kind, kind+"/", prefix), none
		case len(args) == 1 && !strings.Contains(args[0], "/"): // KIND NAME
			return e.objectNames(c, args[0], "", prefix), none
		}
		var kinds []string
		for _, kind := range e.kinds(c) {
			if strings.HasPrefix(kind, prefix) {
				kinds = append(kinds, kind+"/")
			}
		}
		return kinds, none | cobra.ShellCompDirectiveNoSpace
	}
}

// objectNames returns the names of the objects of a kind that Events are about.
func (e *environment) objectNames(c *cobra.Command, kind, before, prefix string) []string {
	object, err := e.kind(c.Context(), kind, e.namespaceOf(c))
	if err != nil {
		return nil
	}
	if !object.ClusterScoped {
		object.Namespace = e.namespaceOf(c)
	}
	names := sets.New[string]()
	e.each(c, "", []query.Object{object}, func(i *query.Item) {
		if name := before + i.Key.Regarding.Name; strings.HasPrefix(name, prefix) {
			names.Insert(name)
		}
	})
	return sets.List(names)
}

// kinds returns the kinds of objects that Events of the namespace are about, and that of
// Nodes, whose Events are elsewhere.
func (e *environment) kinds(c *cobra.Command) []string {
	kinds := sets.New("node", "pod")
	e.each(c, e.namespaceOf(c), nil, func(i *query.Item) {
		if kind := i.Key.Regarding.Kind; kind != "" {
			kinds.Insert(strings.ToLower(kind))
		}
	})
	return sets.List(kinds)
}

func (e *environment) completeNamespaces(c *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	names := sets.New[string]()
	e.each(c, "", nil, func(i *query.Item) {
		if strings.HasPrefix(i.Namespace, prefix) {
			names.Insert(i.Namespace)
		}
	})
	return sets.List(names), cobra.ShellCompDirectiveNoFileComp
}

func (e *environment) completeConfig(what string) completion {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		config, err := e.flags.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := sets.New[string]()
		switch what {
		case "context":
			names = sets.KeySet(config.Contexts)
		case "cluster":
			names = sets.KeySet(config.Clusters)
		case "user":
			names = sets.KeySet(config.AuthInfos)
		}
		return withPrefix(sets.List(names), prefix), cobra.ShellCompDirectiveNoFileComp
	}
}
