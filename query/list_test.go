package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/series"
)

func named(namespace, name string) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) {
		e.Namespace, e.Name, e.Regarding.Namespace = namespace, name, namespace
		e.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "c"}}
	}
}

func about(kind, namespace, name, uid string) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) {
		e.Regarding = corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)}
	}
}

func related(kind, namespace, name, uid string) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) {
		e.Related = &corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name, UID: types.UID(uid)}
	}
}

func reported(controller, component, reason string) func(*eventsv1.Event) {
	return func(e *eventsv1.Event) {
		e.ReportingController, e.DeprecatedSource.Component, e.Reason = controller, component, reason
	}
}

func names(t *testing.T, items iter.Seq2[*Item, error]) []string {
	t.Helper()
	var found []string
	for item, err := range items {
		require.NoError(t, err)
		found = append(found, item.Name)
	}
	return found
}

func errorOf(t *testing.T, items iter.Seq2[*Item, error]) error {
	t.Helper()
	var failed error
	for item, err := range items {
		require.Nil(t, item)
		require.NoError(t, failed, "more than one")
		failed = err
	}
	require.Error(t, failed)
	return failed
}

var atTen = clocktesting.NewFakePassiveClock(t0.Add(10 * time.Minute))

// TestQueries asks the fake server, which selects like kube-apiserver. It checks the
// requests and the results of each query, in both groups.
func TestQueries(t *testing.T) {
	s := &apiServer{}
	clients := s.start(t)
	for _, e := range []*eventsv1.Event{
		newEvent(named("shop", "a1"), about("Pod", "shop", "a", "u1"), reported("c", "", "Failed"), labeled("Ongoing"), recurred(3, 9*time.Minute)),
		newEvent(named("shop", "a2"), about("Pod", "shop", "a", "u2"), reported("", "c", "Pulled"), legacy(2, 0, time.Minute), reported("", "c", "Pulled")),
		newEvent(named("shop", "b1"), about("PersistentVolumeClaim", "shop", "b", "u3"), related("Pod", "shop", "a", "u1"), labeled("Finished"), recurred(2, time.Minute)),
		newEvent(named("shop", "b2"), about("PersistentVolumeClaim", "shop", "b", "u3"), func(e *eventsv1.Event) { e.Type = "Normal" }, recurred(2, time.Minute)),
		newEvent(named("other", "preempted"), about("Pod", "other", "x", "u4"), related("Pod", "shop", "a", "u1")),
		newEvent(named("default", "node1"), about("Node", "", "n1", "n1"), reported("kubelet", "", "Ready"), func(e *eventsv1.Event) { e.ReportingInstance = "kubelet-n1" }),
		newEvent(named("default", "no namespace"), about("Pod", "", "a", "u5"), reported("x", "", "Evicted")),
		newEvent(named("kube-system", "node2"), about("Node", "", "n1", "u9"), reported("d", "c", "Drained"), labeled("Unknown"), recurred(2, time.Minute)),
	} {
		s.Put(e)
	}
	all := []string{"no namespace", "node1", "node2", "preempted", "a1", "a2", "b1", "b2"}
	pod := Object{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "a"}
	pod1 := pod
	pod1.UID = "u1"
	node := Object{Kind: "Node", ClusterScoped: true, Name: "n1"}
	many := []Object{pod}
	for i := range maxObjectRequests {
		many = append(many, Object{Kind: "Pod", Namespace: "shop", Name: fmt.Sprint(i)})
	}
	const aboutB = "shop|regarding.kind=PersistentVolumeClaim,regarding.name=b|" // whether b2 goes on depends on them
	for name, tt := range map[string]struct {
		q        Query
		requests []string // each one is "namespace fields labels"
		want     []string
	}{
		"everything":              {Query{}, []string{"||"}, all},
		"namespaces":              {Query{Namespaces: []string{"shop", "other", "shop"}}, []string{"shop||", "other||"}, []string{"a1", "a2", "b1", "b2", "preempted"}},
		"selectors of the caller": {Query{FieldSelector: "involvedObject.kind=Node", LabelSelector: series.LabelState}, []string{"|regarding.kind=Node|eventseries.dev/state"}, []string{"node2"}},
		"reason":                  {Query{Reasons: []string{"Failed"}}, []string{"|reason=Failed|", aboutB}, []string{"preempted", "a1", "b1", "b2"}},
		"type and action":         {Query{Types: []string{"Normal"}, Actions: []string{"Pull"}}, []string{"|type=Normal|", aboutB}, []string{"b2"}},
		"controller":              {Query{Controllers: []string{"c"}}, []string{"|reportingController=c|", "|reportingController=|"}, []string{"a1", "a2"}},
		"instance":                {Query{Instances: []string{"n1"}}, []string{"||"}, []string{"node1", "a2"}}, // kubelet-n1, and the host of a source
		"instances":               {Query{Instances: []string{"kubelet-n1", "c-1", ""}, Namespaces: []string{"default"}}, []string{"default||"}, []string{"no namespace", "node1"}},
		"component on a machine":  {Query{Controllers: []string{"kubelet"}, Instances: []string{"n1"}}, []string{"|reportingController=kubelet|", "|reportingController=|"}, []string{"node1"}},
		"Node":                    {Query{Nodes: []string{"n1"}, Reasons: []string{"Ready", "Drained"}}, []string{"||"}, []string{"node1", "node2"}},
		"ongoing":                 {Query{States: []series.State{series.Ongoing}}, []string{"||eventseries.dev/state notin (Finished,Unknown)"}, []string{"a1", "a2", "b2"}},
		"finished":                {Query{States: []series.State{series.Finished}}, []string{"||eventseries.dev/state=Finished"}, []string{"b1"}},
		"unknown":                 {Query{States: []series.State{series.Unknown}, At: t0.Add(12*time.Minute + 1)}, []string{"||eventseries.dev/state notin (Finished)"}, []string{"node2"}},
		"quiet":                   {Query{States: []series.State{series.Quiet}, At: t0.Add(12*time.Minute + 1)}, []string{"||eventseries.dev/state notin (Finished,Ongoing,Unknown)"}, []string{"a2"}},
		"singletons":              {Query{States: []series.State{series.Singleton}}, []string{"||eventseries.dev/state notin (Finished,Ongoing,Unknown)"}, []string{"no namespace", "node1", "preempted"}},
		"unknown or finished":     {Query{States: []series.State{series.Unknown, series.Finished}}, []string{"||"}, []string{"node2", "b1"}},
		"since":                   {Query{Since: t0.Add(2 * time.Minute)}, []string{"||"}, []string{"a1", "a2", "b2"}}, // those go on
		"began":                   {Query{Began: t0}, []string{"||"}, all},
		"began later":             {Query{Began: t0.Add(1)}, []string{"||"}, nil},
		"until":                   {Query{Until: t0.Add(-1)}, []string{"||"}, nil},
		"until the first":         {Query{Until: t0, Namespaces: []string{"shop"}}, []string{"shop||"}, []string{"a1", "a2", "b1", "b2"}},

		"regarding":             {Query{Objects: []Object{pod}, Role: Regarding}, []string{"shop|regarding.kind=Pod,regarding.name=a|"}, []string{"a1", "a2"}},
		"regarding by UID":      {Query{Objects: []Object{{UID: "u2"}}, Role: Regarding}, []string{"|regarding.uid=u2|"}, []string{"a2"}},
		"regarding in two ways": {Query{Objects: []Object{pod, {UID: "u1"}, pod}, Role: Regarding}, []string{"shop|regarding.kind=Pod,regarding.name=a|", "|regarding.uid=u1|"}, []string{"a1", "a2"}},
		"another group":         {Query{Objects: []Object{{APIVersion: "apps/v1", Kind: "Pod", Namespace: "shop", Name: "a"}}, Role: Regarding}, []string{"shop|regarding.kind=Pod,regarding.name=a|"}, []string{"a1", "a2"}}, // their apiVersion is empty
		"related":               {Query{Objects: []Object{pod}, Role: Related}, []string{"||"}, []string{"preempted", "b1"}},
		"either":                {Query{Objects: []Object{pod1}}, []string{"||"}, []string{"preempted", "a1", "b1"}},
		"node":                  {Query{Objects: []Object{node}, Role: Regarding}, []string{"default|regarding.kind=Node,regarding.name=n1|", "kube-system|regarding.kind=Node,regarding.name=n1|"}, []string{"node1", "node2"}},
		"node by UID":           {Query{Objects: []Object{{Kind: "Node", ClusterScoped: true, Name: "n1", UID: "u9"}}, Role: Regarding}, []string{"default|regarding.kind=Node,regarding.name=n1|", "kube-system|regarding.kind=Node,regarding.name=n1|"}, []string{"node1", "node2"}},
		"node elsewhere":        {Query{Objects: []Object{node}, Role: Regarding, Namespaces: []string{"shop"}}, nil, nil},
		"many objects":          {Query{Objects: many, Role: Regarding, Reasons: []string{"Pulled"}}, []string{"shop|reason=Pulled|", "shop|regarding.kind=Pod,regarding.name=a|"}, []string{"a2"}},
		"no namespace":          {Query{Objects: []Object{{Kind: "Pod", Namespace: "default", Name: "a"}}, Role: Regarding}, []string{"default|regarding.kind=Pod,regarding.name=a|"}, []string{"no namespace"}},
		"name in any namespace": {Query{Objects: []Object{{Kind: "Pod", Name: "x"}}, Role: Regarding}, []string{"|regarding.kind=Pod,regarding.name=x|"}, []string{"preempted"}},
	} {
		t.Run(name, func(t *testing.T) {
			reader := NewReader(clients, Options{Clock: atTen})
			assert.ElementsMatch(t, tt.want, names(t, reader.List(t.Context(), tt.q)))
			for i, request := range s.asked() {
				require.Less(t, i, len(tt.requests))
				parts := strings.Split(tt.requests[i], "|")
				assert.Equal(t, fmt.Sprintf("list events.k8s.io %s fields=%s labels=%s limit=500 continue=", parts[0], parts[1], parts[2]), request)
			}
			reader.unserved.Store(true)
			assert.ElementsMatch(t, tt.want, names(t, reader.List(t.Context(), tt.q)), "through core/v1")
			s.asked()
			// A fake clientset selects by labels only, and has no REST client.
			events := s.Events()
			clientset := fake.NewClientset()
			for i := range events {
				require.NoError(t, clientset.Tracker().Add(&events[i]))
			}
			if tt.q.FieldSelector == "" {
				assert.ElementsMatch(t, tt.want, names(t, NewReader(clientset, Options{Clock: atTen}).List(t.Context(), tt.q)))
			}
		})
	}
}

func TestInvalidSelectors(t *testing.T) {
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{})
	require.ErrorContains(t, errorOf(t, reader.List(t.Context(), Query{FieldSelector: "a?b"})), `query: field selector "a?b": `)
	require.ErrorContains(t, errorOf(t, reader.List(t.Context(), Query{LabelSelector: "a in b"})), `query: label selector "a in b": `)
	assert.Empty(t, s.asked())
	err := errorOf(t, reader.List(t.Context(), Query{FieldSelector: "related.name=x"}))
	require.ErrorContains(t, err, "query: cannot list events in all namespaces: field label not supported: related.name")
}

// Only core/v1 selects by source.
func TestSelectorOfCore(t *testing.T) {
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{})
	s.answer = deny("list core")
	err := errorOf(t, reader.List(t.Context(), Query{FieldSelector: "source=kubelet,regarding.kind=Node"}))
	require.ErrorContains(t, err, "query: missing permission to list events in all namespaces: ")
	assert.Equal(t, []string{"list core  fields=involvedObject.kind=Node,source=kubelet labels= limit=500 continue="}, s.asked())
}

// fill creates n Events in namespace shop, with names from e000.
func fill(s *apiServer, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("e%03d", i))
		s.Put(newEvent(named("shop", all[i])))
	}
	return all
}

func TestPages(t *testing.T) {
	s := &apiServer{}
	clients := s.start(t)
	all := fill(s, 25)
	var progress []Progress
	reader := NewReader(clients, Options{PageSize: 10, OnProgress: func(p Progress) { progress = append(progress, p) }})
	assert.Equal(t, all, names(t, reader.List(t.Context(), Query{})))
	assert.Len(t, s.asked(), 3)
	assert.Equal(t, []Progress{{Events: 10, Remaining: 15}, {Events: 20, Remaining: 5}, {Events: 25}, {Events: 25, Done: true}}, progress)

	for item, err := range reader.List(t.Context(), Query{}) {
		require.NoError(t, err)
		assert.Equal(t, "events.k8s.io/v1", item.Event.APIVersion)
		assert.Equal(t, "Event", item.Event.Kind)
		assert.Empty(t, item.Event.ManagedFields)
		if item.Name == "e009" {
			break
		}
	}
	assert.Len(t, s.asked(), 1, "pages are requested when they are needed")

	reader = NewReader(clients, Options{PageSize: -1, ManagedFields: true})
	for item, err := range reader.List(t.Context(), Query{}) {
		require.NoError(t, err)
		assert.NotEmpty(t, item.Event.ManagedFields)
	}
	assert.Len(t, s.asked(), 1)
}

// The server forgets the version of a list in the middle.
func TestExpiredList(t *testing.T) {
	for name, token := range map[string]string{"token for the rest": "c2hvcC9lMDE5", "no token": "", "no token, and the reason Gone": ""} { // shop/e019
		t.Run(name, func(t *testing.T) {
			s := &apiServer{}
			clients := s.start(t)
			all := fill(s, 35)
			expired := 0
			s.answer = func(_ string, opts metav1.ListOptions) *apierrors.StatusError {
				if opts.Continue != "c2hvcC9lMDE5" || expired > 0 {
					return nil
				}
				expired++
				s.Put(newEvent(named("shop", "e0005"))) // would be on the first page
				err := apierrors.NewResourceExpired("The provided continue parameter is too old")
				err.ErrStatus.Continue = token
				if strings.Contains(name, "Gone") {
					err.ErrStatus.Reason = metav1.StatusReasonGone
				}
				return err
			}
			assert.Equal(t, all, names(t, NewReader(clients, Options{PageSize: 10}).List(t.Context(), Query{})))
			assert.Equal(t, 1, expired)
			fromTheBeginning := slices.DeleteFunc(s.asked(), func(r string) bool { return !strings.HasSuffix(r, " continue=") })
			assert.Equal(t, token == "", len(fromTheBeginning) == 2)
		})
	}
	t.Run("always", func(t *testing.T) {
		s := &apiServer{}
		clients := s.start(t)
		fill(s, 35)
		s.answer = func(_ string, opts metav1.ListOptions) *apierrors.StatusError {
			if opts.Continue == "" {
				return nil
			}
			return apierrors.NewResourceExpired("too old")
		}
		var last error
		for _, err := range NewReader(clients, Options{PageSize: 10}).List(t.Context(), Query{}) {
			last = err
		}
		assert.True(t, apierrors.IsResourceExpired(last), "%v", last)
	})
}

// A server, or a proxy before it, does not understand its own tokens.
func TestServerThatRepeatsPages(t *testing.T) {
	fresh := 0
	for name, pages := range map[string]map[string]string{ // events and the next token, by token
		"abA":    {"": "abA", "A": "abA"},
		"abcA":   {"": "abA", "A": "cA"},
		"abcABA": {"": "aA", "A": "bB", "B": "cA"},
		"ab":     {"": "ab"}, // always another token
		"abAA":   {"": "abA", "A": "A"},
	} {
		var warnings []error
		reader := NewReader(fake.NewClientset(), Options{OnWarning: func(err error) { warnings = append(warnings, err) }})
		reader.groups[0].list = func(_ context.Context, _ string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
			page, ok := pages[opts.Continue]
			if !ok {
				page = pages[""]
			}
			fresh++
			found := &eventsv1.EventList{ListMeta: metav1.ListMeta{Continue: fmt.Sprint(fresh)}}
			for _, r := range page {
				if r < 'a' {
					found.Continue = string(r)
				} else {
					found.Items = append(found.Items, *newEvent(named("shop", string(r))))
				}
			}
			return found, nil
		}
		want := strings.Split(strings.TrimRight(name, "AB"), "")
		assert.Equal(t, want, names(t, reader.List(t.Context(), Query{})), name)
		require.Len(t, warnings, 1, name)
		assert.EqualError(t, warnings[0], "query: list events in all namespaces: the server repeats pages, so Events can be missing", name)
		for change, err := range reader.Watch(t.Context(), Query{}) {
			assert.True(t, err == nil && change.Type == Added || err != nil && strings.Contains(err.Error(), "the server repeats pages"), name)
		}
	}
}

// deny answers requests that begin with one of the prefixes like a server with RBAC.
func deny(prefixes ...string) func(string, metav1.ListOptions) *apierrors.StatusError {
	return func(request string, _ metav1.ListOptions) *apierrors.StatusError {
		for _, prefix := range prefixes {
			if strings.HasPrefix(request, prefix) {
				return apierrors.NewForbidden(eventsv1.Resource("events"), "", errors.New("user dev"))
			}
		}
		return nil
	}
}

func TestPermissions(t *testing.T) {
	pod := []Object{{Kind: "Pod", Namespace: "shop", Name: "checkout-0"}}
	for name, tt := range map[string]struct {
		deny     []string
		q        Query
		want     []string
		warnings []string
		err      string // empty if the list succeeds
	}{
		"only core/v1":   {[]string{"list events.k8s.io"}, Query{}, []string{"e000", "e001"}, nil, ""},
		"nothing":        {[]string{"list"}, Query{}, nil, nil, "query: missing permission to list events.events.k8s.io in all namespaces: "},
		"a namespace":    {[]string{"list events.k8s.io", "list core shop"}, Query{Namespaces: []string{"shop", "x"}}, nil, []string{`in namespace "shop": `}, ""},
		"not the object": {[]string{"list"}, Query{Objects: pod}, nil, nil, `query: missing permission to list events.events.k8s.io in namespace "shop": `},
		// Only the namespace of the object is permitted. One line says what is missing.
		"no namespace but one": {[]string{"list core ", "list events.k8s.io default", "list events.k8s.io kube-system", "list events.k8s.io !"}, Query{Objects: pod}, []string{"e000", "e001"},
			[]string{"in all namespaces: "}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &apiServer{}
			clients := s.start(t)
			fill(s, 2)
			s.answer = func(request string, opts metav1.ListOptions) *apierrors.StatusError {
				if strings.HasSuffix(request, " ") {
					request += "!" // all namespaces
				}
				return deny(tt.deny...)(request, opts)
			}
			var warnings []error
			items := NewReader(clients, Options{OnWarning: func(err error) { warnings = append(warnings, err) }}).List(t.Context(), tt.q)
			if tt.err != "" {
				err := errorOf(t, items)
				require.ErrorContains(t, err, tt.err)
				require.ErrorAs(t, err, new(*PermissionError))
				assert.True(t, apierrors.IsForbidden(err))
			} else {
				assert.Equal(t, tt.want, names(t, items))
			}
			require.Len(t, warnings, len(tt.warnings))
			for i, warning := range warnings {
				require.ErrorContains(t, warning, tt.warnings[i])
			}
		})
	}
}

func TestServerWithoutGroup(t *testing.T) {
	s := &apiServer{}
	clients := s.start(t)
	fill(s, 2)
	reader := NewReader(clients, Options{})
	unserved := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the server could not find the requested resource"}}
	s.answer = func(request string, _ metav1.ListOptions) *apierrors.StatusError {
		if strings.Contains(request, "events.k8s.io") {
			return unserved
		}
		return nil
	}
	for range 2 {
		assert.Len(t, names(t, reader.List(t.Context(), Query{})), 2)
	}
	assert.Len(t, s.asked(), 3, "the Reader remembers")

	s.answer = func(string, metav1.ListOptions) *apierrors.StatusError { return unserved }
	require.ErrorContains(t, errorOf(t, NewReader(clients, Options{}).List(t.Context(), Query{})), "neither in events.k8s.io/v1 nor in core/v1")
	s.answer = deny("list core")
	require.ErrorContains(t, errorOf(t, reader.List(t.Context(), Query{})), "missing permission to list events in all namespaces")
}

// A server before Kubernetes 1.19 does not select by reportingController.
func TestServerWithFewerFields(t *testing.T) {
	s := &apiServer{}
	clients := s.start(t)
	fill(s, 2)
	s.answer = func(_ string, opts metav1.ListOptions) *apierrors.StatusError {
		if strings.Contains(opts.FieldSelector, "reportingController") {
			return apierrors.NewBadRequest("field label not supported: reportingController")
		}
		return nil
	}
	reader := NewReader(clients, Options{})
	assert.Equal(t, []string{"e000", "e001"}, names(t, reader.List(t.Context(), Query{Controllers: []string{"example.com/c"}})))
	assert.Empty(t, names(t, reader.List(t.Context(), Query{Controllers: []string{"other"}})))
}

func TestServerDown(t *testing.T) {
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, errorOf(t, reader.List(ctx, Query{})), context.Canceled)
}

func TestGet(t *testing.T) {
	s := &apiServer{}
	reader := NewReader(s.start(t), Options{})
	fill(s, 2)
	item, err := reader.Get(t.Context(), "shop", "e001")
	require.NoError(t, err)
	assert.Equal(t, "e001", item.Name)
	for _, name := range []string{"e002", "a,b=c"} {
		_, err = reader.Get(t.Context(), "shop", name)
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	}
}
