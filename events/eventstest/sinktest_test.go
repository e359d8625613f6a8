package eventstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/eventseries/eventseries/events"
)

// goodSink is a sink that keeps to all rules.
func goodSink() SinkUnderTest {
	s := &Server{}
	return SinkUnderTest{Sink: s, Stall: func() (resume func()) {
		resumed := make(chan struct{})
		s.Answer(func(ctx context.Context, _ Request) error {
			select {
			case <-resumed:
			case <-ctx.Done():
			}
			return nil
		})
		return func() { s.Answer(nil); close(resumed) }
	}}
}

func TestServerIsASink(t *testing.T) {
	TestSink(t, func(*testing.T) SinkUnderTest { return goodSink() })
}

func TestEventSinkImplOnAFakeClientsetIsASink(t *testing.T) {
	newSink := func(*testing.T) SinkUnderTest {
		return SinkUnderTest{Sink: &events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()}, Unversioned: true}
	}
	TestSink(t, newSink)
	assert.NoError(t, CheckSink(t.Context(), newSink(t)))
}

// brokenSink is a good sink but for what is set.
type brokenSink struct {
	*Server
	create func(*Server, context.Context, *eventsv1.Event) (*eventsv1.Event, error)
	patch  func(*Server, context.Context, *eventsv1.Event, []byte) (*eventsv1.Event, error)
	list   func(*Server, context.Context, string, metav1.ListOptions) (*eventsv1.EventList, error)
}

func (b *brokenSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if b.create == nil {
		return b.Server.Create(ctx, event)
	}
	return b.create(b.Server, ctx, event)
}

func (b *brokenSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if b.patch == nil {
		return b.Server.Patch(ctx, event, data)
	}
	return b.patch(b.Server, ctx, event, data)
}

func (b *brokenSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	if b.list == nil {
		return b.Server.List(ctx, namespace, opts)
	}
	return b.list(b.Server, ctx, namespace, opts)
}

// changed returns a sink that creates something else than it is given.
func changed(change func(*eventsv1.Event)) func() *brokenSink {
	return func() *brokenSink {
		return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
			event = event.DeepCopy()
			change(event)
			return s.Create(ctx, event)
		}}
	}
}

// brokenSinks has, for each rule, sinks that break it.
var brokenSinks = map[string]map[string]func() *brokenSink{
	"Create writes the whole Event": {
		"no related object":   changed(func(e *eventsv1.Event) { e.Related = nil }),
		"no annotations":      changed(func(e *eventsv1.Event) { e.Annotations = nil }),
		"no field path":       changed(func(e *eventsv1.Event) { e.Regarding.FieldPath = "" }),
		"no regarding object": changed(func(e *eventsv1.Event) { e.Regarding.Name = "" }),
		"another reason":      changed(func(e *eventsv1.Event) { e.Reason = "Other" }),
		"another action":      changed(func(e *eventsv1.Event) { e.Action = "Other" }),
		"another type":        changed(func(e *eventsv1.Event) { e.Type = "Normal" }),
		"another controller":  changed(func(e *eventsv1.Event) { e.ReportingController = "other" }),
		"another name":        changed(func(e *eventsv1.Event) { e.Name += "x" }),
		"no instance":         changed(func(e *eventsv1.Event) { e.ReportingInstance = "other" }),
		"long notes are cut":  changed(func(e *eventsv1.Event) { e.Note = e.Note[:min(len(e.Note), 1000)] }),
		"long names are not taken": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				if len(event.Name) > 63 {
					return nil, apierrors.NewBadRequest("the name is too long")
				}
				return s.Create(ctx, event)
			}}
		},
	},
	"times are kept to the microsecond": {
		"first time in seconds": changed(func(e *eventsv1.Event) { e.EventTime.Time = e.EventTime.Truncate(time.Second) }),
		"last time in milliseconds": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				return s.Patch(ctx, event, []byte(strings.ReplaceAll(string(data), `023Z"`, `000Z"`)))
			}}
		},
	},
	"Create takes a series": {
		"series are dropped": changed(func(e *eventsv1.Event) { e.Series = nil }),
	},
	"Create answers with the Event": {
		"no answer": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				_, err := s.Create(ctx, event)
				return nil, err
			}}
		},
		"the question is the answer": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				_, err := s.Create(ctx, event)
				return event, err
			}}
		},
		"another version": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				created, err := s.Create(ctx, event)
				if err == nil {
					created.ResourceVersion += "0"
				}
				return created, err
			}}
		},
	},
	"Create of a name that stands is AlreadyExists": {
		"it is replaced": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				_ = s.Delete(event.Namespace, event.Name)
				return s.Create(ctx, event)
			}}
		},
		"what stands is the answer": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				created, err := s.Create(ctx, event)
				if apierrors.IsAlreadyExists(err) {
					return s.Patch(ctx, event, []byte(`{}`))
				}
				return created, err
			}}
		},
		"an error of its own": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				created, err := s.Create(ctx, event)
				if apierrors.IsAlreadyExists(err) {
					err = errors.New("exists")
				}
				return created, err
			}}
		},
	},
	"a namespace is respected": {
		"all in one": func() *brokenSink {
			return &brokenSink{
				create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
					event = event.DeepCopy()
					event.Namespace, event.Regarding.Namespace = "default", "default"
					return s.Create(ctx, event)
				},
				patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
					event = event.DeepCopy()
					event.Namespace = "default"
					return s.Patch(ctx, event, data)
				},
			}
		},
		"patches elsewhere are left out": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				if event.Namespace != "default" {
					data = []byte(`{}`)
				}
				return s.Patch(ctx, event, data)
			}}
		},
		"patches go to another": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				event = event.DeepCopy()
				event.Namespace = "default"
				return s.Patch(ctx, event, data)
			}}
		},
	},
	"an empty patch shows the Event": {
		"it is not sent": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				if string(data) == `{}` {
					return event, nil
				}
				return s.Patch(ctx, event, data)
			}}
		},
		"it has no answer": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				_, err := s.Patch(ctx, event, data)
				return nil, err
			}}
		},
		"it is a write": func() *brokenSink {
			looks := 0
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				if string(data) == `{}` {
					looks++
					_, _ = s.Patch(ctx, event, fmt.Appendf(nil, `{"metadata":{"labels":{"looks":"%d"}}}`, looks))
				}
				return s.Patch(ctx, event, data)
			}}
		},
	},
	"a patch sets the series": {
		"only the first": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				if now, err := s.Patch(ctx, event, []byte(`{}`)); err == nil && now.Series != nil {
					return now, nil
				}
				return s.Patch(ctx, event, data)
			}}
		},
		"the answer is what was there before": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				before, _ := s.Patch(ctx, event, []byte(`{}`))
				_, err := s.Patch(ctx, event, data)
				return before, err
			}}
		},
	},
	"a patch merges annotations": {
		"they are replaced": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				if strings.Contains(string(data), `"annotations"`) {
					_, _ = s.Patch(ctx, event, []byte(`{"metadata":{"annotations":null}}`))
				}
				return s.Patch(ctx, event, data)
			}}
		},
		"null is not understood": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				return s.Patch(ctx, event, []byte(strings.ReplaceAll(string(data), "null", `""`)))
			}}
		},
	},
	"a patch that is sent twice does no harm": {
		"what changes nothing is refused": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				before, _ := s.Patch(ctx, event, []byte(`{}`))
				after, err := s.Patch(ctx, event, data)
				if err == nil && string(data) != `{}` && before.ResourceVersion == after.ResourceVersion {
					return nil, apierrors.NewBadRequest("nothing has changed")
				}
				return after, err
			}}
		},
	},
	"a patch writes nothing but itself": {
		"annotations of the Event as well": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				for key, value := range event.Annotations {
					if _, err := s.Patch(ctx, event, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)); err != nil {
						return nil, err
					}
				}
				return s.Patch(ctx, event, data)
			}}
		},
	},
	"a patch of what is not there is NotFound": {
		"it is created": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				patched, err := s.Patch(ctx, event, data)
				if apierrors.IsNotFound(err) {
					return s.Create(ctx, event)
				}
				return patched, err
			}}
		},
		"an error of its own": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				patched, err := s.Patch(ctx, event, data)
				if apierrors.IsNotFound(err) {
					err = errors.New("not found")
				}
				return patched, err
			}}
		},
	},
	"a patch of another resourceVersion is Conflict": {
		"the version is not looked at": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				return s.Patch(ctx, event, []byte(strings.ReplaceAll(string(data), `"resourceVersion"`, `"other"`)))
			}}
		},
		"it is tried again": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				patched, err := s.Patch(ctx, event, data)
				if apierrors.IsConflict(err) {
					_, _ = s.Patch(ctx, event, []byte(strings.ReplaceAll(string(data), `"resourceVersion"`, `"other"`)))
				}
				return patched, err
			}}
		},
		"none fits": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				return s.Patch(ctx, event, []byte(strings.ReplaceAll(string(data), `"resourceVersion":"`, `"resourceVersion":"0`)))
			}}
		},
	},
	"what a call is given is left as it is": {
		"Create fills in": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				created, err := s.Create(ctx, event)
				if err == nil {
					event.ResourceVersion = created.ResourceVersion
				}
				return created, err
			}}
		},
		"Patch fills in": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				patched, err := s.Patch(ctx, event, data)
				if err == nil {
					event.Series = patched.Series
				}
				return patched, err
			}}
		},
		"Patch overwrites the patch": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				patched, err := s.Patch(ctx, event, data)
				clear(data)
				return patched, err
			}}
		},
	},
	"calls may be made at the same time": {
		"looks first and creates then": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				if _, err := s.Patch(ctx, event, []byte(`{}`)); err == nil {
					return nil, apierrors.NewAlreadyExists(eventsv1.Resource("events"), event.Name)
				}
				time.Sleep(time.Second)
				return s.Update(ctx, event)
			}}
		},
		"one after the other or not at all": func() *brokenSink {
			var mu sync.Mutex
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				if !mu.TryLock() {
					return nil, errors.New("busy")
				}
				defer mu.Unlock()
				time.Sleep(time.Second)
				return s.Create(ctx, event)
			}}
		},
	},
	"a call whose context has ended is carried out or an error": {
		"Create is left out": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				if ctx.Err() != nil {
					return event, nil
				}
				return s.Create(ctx, event)
			}}
		},
		"Patch is left out": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				if ctx.Err() != nil {
					return event, nil
				}
				return s.Patch(ctx, event, data)
			}}
		},
	},
	"a call returns when its context ends": {
		"Create does not": func() *brokenSink {
			return &brokenSink{create: func(s *Server, ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
				return s.Create(context.WithoutCancel(ctx), event)
			}}
		},
		"Patch does not": func() *brokenSink {
			return &brokenSink{patch: func(s *Server, ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
				return s.Patch(context.WithoutCancel(ctx), event, data)
			}}
		},
		"List does not": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				return s.List(context.WithoutCancel(ctx), namespace, opts)
			}}
		},
		"it returns no error": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				list, err := s.List(ctx, namespace, opts)
				if ctx.Err() != nil {
					return &eventsv1.EventList{}, nil
				}
				return list, err
			}}
		},
	},
	"List finds every Event that is selected": {
		"of one namespace alone": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, _ string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				return s.List(ctx, "default", opts)
			}}
		},
		"of all namespaces alone": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				if namespace != "" {
					return &eventsv1.EventList{}, nil
				}
				return s.List(ctx, namespace, opts)
			}}
		},
		"by another field": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				opts.FieldSelector = strings.ReplaceAll(opts.FieldSelector, "reportingController", "reason")
				return s.List(ctx, namespace, opts)
			}}
		},
		"nothing": func() *brokenSink {
			return &brokenSink{list: func(*Server, context.Context, string, metav1.ListOptions) (*eventsv1.EventList, error) {
				return nil, nil
			}}
		},
	},
	"List shows the whole Event": {
		"metadata alone": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				list, err := s.List(ctx, namespace, opts)
				for i := range list.Items {
					list.Items[i] = eventsv1.Event{ObjectMeta: list.Items[i].ObjectMeta}
				}
				return list, err
			}}
		},
		"no version": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				list, err := s.List(ctx, namespace, opts)
				for i := range list.Items {
					list.Items[i].ResourceVersion = ""
				}
				return list, err
			}}
		},
	},
	"List has pages that come to an end": {
		"only the first": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				list, err := s.List(ctx, namespace, opts)
				list.Continue = ""
				return list, err
			}}
		},
		"the first again and again": func() *brokenSink {
			return &brokenSink{list: func(s *Server, ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
				opts.Continue = ""
				return s.List(ctx, namespace, opts)
			}}
		},
	},
}

// Each rule is broken by one sink at least, and found out.
func TestBrokenSinks(t *testing.T) {
	names := make(map[string]bool)
	for _, rule := range sinkRules {
		assert.NotEmpty(t, brokenSinks[rule.name], "no sink breaks the rule %q", rule.name)
		for name, newBroken := range brokenSinks[rule.name] {
			t.Run(rule.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					good := goodSink()
					broken := newBroken()
					broken.Server = good.Sink.(*Server)
					err := rule.test(t.Context(), SinkUnderTest{Sink: broken, Stall: good.Stall})
					require.ErrorContains(t, err, fmt.Sprintf("eventstest: sink breaks the rule %q: ", rule.name))
					t.Log(err)
				})
			})
		}
		names[rule.name] = true
	}
	for name := range maps.Keys(brokenSinks) {
		assert.True(t, names[name], "there is no rule %q", name)
	}
}

// Rules that cannot be tested are skipped, and only those.
func TestSinksThatCanDoLess(t *testing.T) {
	good := goodSink()
	less := SinkUnderTest{Sink: struct{ events.EventSink }{good.Sink}, Unversioned: true}
	skipped := 0
	for _, rule := range sinkRules {
		err := rule.test(t.Context(), less)
		if errors.Is(err, errSkipped) {
			skipped++
			continue
		}
		assert.NoError(t, err)
	}
	assert.Equal(t, 5, skipped)
}

// What TestSink does with each rule.
func TestRulesAreReported(t *testing.T) {
	inner := &tb{}
	for _, rule := range sinkRules {
		rule.report(inner, goodSink())
	}
	inner.assertPassed(t)
	broken := brokenSinks["Create takes a series"]["series are dropped"]()
	broken.Server = &Server{}
	for _, rule := range sinkRules {
		rule.report(inner, SinkUnderTest{Sink: broken})
		reported := inner.take()
		switch rule.name {
		case "Create takes a series":
			assert.Contains(t, reported, `sink breaks the rule "Create takes a series"`)
		case "a call returns when its context ends":
			assert.Equal(t, "skipped: not to be tested: SinkUnderTest.Stall is not set", reported)
		}
	}
}

func TestCheckSinkSaysAll(t *testing.T) {
	broken := brokenSinks["Create takes a series"]["series are dropped"]()
	broken.Server = &Server{}
	err := CheckSink(t.Context(), SinkUnderTest{Sink: broken})
	assert.ErrorContains(t, err, `sink breaks the rule "Create takes a series": an empty patch shows series "none", want "x57`)
	assert.ErrorContains(t, err, `sink breaks the rule "a patch merges annotations"`)
	assert.NotContains(t, err.Error(), `sink breaks the rule "a namespace is respected"`)
}
