package eventstest

import (
	"context"
	"errors"
	"fmt"
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

// goodSink returns a sink that keeps all rules.
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

// brokenSink is a Server that breaks a rule: breakIt handles its calls.
type brokenSink struct {
	*Server
	breakIt func(*call)
}

// call is a call of a brokenSink: its arguments, and what it returns.
type call struct {
	s         *Server
	verb      string // create, patch or list
	ctx       context.Context
	event     *eventsv1.Event
	data      []byte
	namespace string
	opts      metav1.ListOptions

	list *eventsv1.EventList
	got  *eventsv1.Event
	err  error
}

// forward makes the call.
func (c *call) forward() {
	switch c.verb {
	case "create":
		c.got, c.err = c.s.Create(c.ctx, c.event)
	case "patch":
		c.got, c.err = c.s.Patch(c.ctx, c.event, c.data)
	case "list":
		c.list, c.err = c.s.List(c.ctx, c.namespace, c.opts)
	}
}

// patch sends another patch of the same Event before the call.
func (c *call) patch(data string) *eventsv1.Event {
	event, _ := c.s.Patch(c.ctx, c.event, []byte(data))
	return event
}

// replace replaces a part of the patch.
func (c *call) replace(old, new string) {
	c.data = []byte(strings.ReplaceAll(string(c.data), old, new))
	c.forward()
}

func (b *brokenSink) call(c *call) *call {
	c.s = b.Server
	b.breakIt(c)
	return c
}

func (b *brokenSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	c := b.call(&call{verb: "create", ctx: ctx, event: event})
	return c.got, c.err
}

func (b *brokenSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	c := b.call(&call{verb: "patch", ctx: ctx, event: event, data: data})
	return c.got, c.err
}

func (b *brokenSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	c := b.call(&call{verb: "list", ctx: ctx, namespace: namespace, opts: opts})
	return c.list, c.err
}

// on breaks the calls of one verb.
func on(verb string, breakIt func(*call)) func(*call) {
	return func(c *call) {
		if c.verb == verb {
			breakIt(c)
		} else {
			c.forward()
		}
	}
}

// altered alters the Event of a call.
func altered(verb string, alter func(*eventsv1.Event)) func(*call) {
	return on(verb, func(c *call) {
		c.event = c.event.DeepCopy()
		alter(c.event)
		c.forward()
	})
}

// answered alters the response of a call.
func answered(verb string, alter func(*call)) func(*call) {
	return on(verb, func(c *call) {
		c.forward()
		alter(c)
	})
}

// detached makes the calls of one verb without the end of their context.
func detached(verb string) func(*call) {
	return on(verb, func(c *call) {
		c.ctx = context.WithoutCancel(c.ctx)
		c.forward()
	})
}

// omittedAfterContext does nothing, without an error, when the context has ended.
func omittedAfterContext(c *call) {
	if c.got = c.event; c.ctx.Err() == nil {
		c.forward()
	}
}

// brokenSinks maps each rule to sinks that break it.
func brokenSinks() map[string]map[string]func(*call) {
	looks := 0
	var busy sync.Mutex
	toDefault := func(e *eventsv1.Event) { e.Namespace, e.Regarding.Namespace = "default", "default" }
	return map[string]map[string]func(*call){
		"Create writes the whole Event": {
			"no related object":   altered("create", func(e *eventsv1.Event) { e.Related = nil }),
			"no labels":           altered("create", func(e *eventsv1.Event) { e.Labels = nil }),
			"no annotations":      altered("create", func(e *eventsv1.Event) { e.Annotations = nil }),
			"no field path":       altered("create", func(e *eventsv1.Event) { e.Regarding.FieldPath = "" }),
			"no regarding object": altered("create", func(e *eventsv1.Event) { e.Regarding.Name = "" }),
			"other reason":        altered("create", func(e *eventsv1.Event) { e.Reason = "Other" }),
			"other action":        altered("create", func(e *eventsv1.Event) { e.Action = "Other" }),
			"other type":          altered("create", func(e *eventsv1.Event) { e.Type = "Normal" }),
			"other controller":    altered("create", func(e *eventsv1.Event) { e.ReportingController = "other" }),
			"other name":          altered("create", func(e *eventsv1.Event) { e.Name += "x" }),
			"other instance":      altered("create", func(e *eventsv1.Event) { e.ReportingInstance = "other" }),
			"long notes are cut":  altered("create", func(e *eventsv1.Event) { e.Note = e.Note[:min(len(e.Note), 1000)] }),
			"long names are rejected": on("create", func(c *call) {
				if c.err = apierrors.NewBadRequest("the name is too long"); len(c.event.Name) <= 63 {
					c.forward()
				}
			}),
		},
		"times keep their microseconds": {
			"eventTime in seconds":             altered("create", func(e *eventsv1.Event) { e.EventTime.Time = e.EventTime.Truncate(time.Second) }),
			"lastObservedTime in milliseconds": on("patch", func(c *call) { c.replace(`023Z"`, `000Z"`) }),
		},
		"Create accepts a series": {
			"series are dropped": altered("create", func(e *eventsv1.Event) { e.Series = nil }),
		},
		"Create returns the Event": {
			"no Event":      answered("create", func(c *call) { c.got = nil }),
			"the argument":  answered("create", func(c *call) { c.got = c.event }),
			"other version": answered("create", func(c *call) { c.got.ResourceVersion += "0" }),
		},
		"Create of an existing name returns AlreadyExists": {
			"the Event is replaced": on("create", func(c *call) {
				_ = c.s.Delete(c.event.Namespace, c.event.Name)
				c.forward()
			}),
			"the existing Event is returned": answered("create", func(c *call) {
				if apierrors.IsAlreadyExists(c.err) {
					c.got, c.err = c.patch(`{}`), nil
				}
			}),
			"other error": answered("create", func(c *call) {
				if apierrors.IsAlreadyExists(c.err) {
					c.err = errors.New("exists")
				}
			}),
		},
		"namespaces are separate": {
			"all in one": func(c *call) { altered(c.verb, toDefault)(c) },
			"patches elsewhere are omitted": on("patch", func(c *call) {
				if c.event.Namespace != "default" {
					c.data = []byte(`{}`)
				}
				c.forward()
			}),
			"patches go to another": altered("patch", toDefault),
		},
		"an empty patch returns the Event": {
			"it is not sent": on("patch", func(c *call) {
				if c.got = c.event; string(c.data) != `{}` {
					c.forward()
				}
			}),
			"no Event": answered("patch", func(c *call) { c.got = nil }),
			"it is a write": on("patch", func(c *call) {
				if string(c.data) == `{}` {
					looks++
					c.patch(fmt.Sprintf(`{"metadata":{"labels":{"looks":"%d"}}}`, looks))
				}
				c.forward()
			}),
		},
		"a patch sets the series": {
			"only the first": on("patch", func(c *call) {
				if c.got = c.patch(`{}`); c.got == nil || c.got.Series == nil {
					c.forward()
				}
			}),
			"the old Event is returned": on("patch", func(c *call) {
				before := c.patch(`{}`)
				c.forward()
				c.got = before
			}),
		},
		"a patch merges labels and annotations": {
			"annotations are replaced": on("patch", func(c *call) {
				if strings.Contains(string(c.data), `"annotations"`) {
					c.patch(`{"metadata":{"annotations":null}}`)
				}
				c.forward()
			}),
			"labels are ignored":      on("patch", func(c *call) { c.replace(`"labels"`, `"other"`) }),
			"null is an empty string": on("patch", func(c *call) { c.replace("null", `""`) }),
		},
		"a patch is idempotent": {
			"a patch without changes is rejected": on("patch", func(c *call) {
				before := c.patch(`{}`)
				c.forward()
				if c.err == nil && string(c.data) != `{}` && before.ResourceVersion == c.got.ResourceVersion {
					c.err = apierrors.NewBadRequest("nothing has changed")
				}
			}),
		},
		"a patch changes nothing else": {
			"annotations of the Event are written": on("patch", func(c *call) {
				for key, value := range c.event.Annotations {
					c.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
				}
				c.forward()
			}),
		},
		"a patch of a missing Event returns NotFound": {
			"it is created": answered("patch", func(c *call) {
				if apierrors.IsNotFound(c.err) {
					c.got, c.err = c.s.Create(c.ctx, c.event)
				}
			}),
			"other error": answered("patch", func(c *call) {
				if apierrors.IsNotFound(c.err) {
					c.err = errors.New("not found")
				}
			}),
		},
		"a patch with a stale resourceVersion returns Conflict": {
			"the version is ignored": on("patch", func(c *call) { c.replace(`"resourceVersion"`, `"other"`) }),
			"it is retried": answered("patch", func(c *call) {
				if apierrors.IsConflict(c.err) {
					c.patch(strings.ReplaceAll(string(c.data), `"resourceVersion"`, `"other"`))
				}
			}),
			"no version matches": on("patch", func(c *call) { c.replace(`"resourceVersion":"`, `"resourceVersion":"0`) }),
		},
		"calls do not modify their arguments": {
			"Create fills in":            answered("create", func(c *call) { c.event.ResourceVersion = c.got.ResourceVersion }),
			"Patch fills in":             answered("patch", func(c *call) { c.event.Series = c.got.Series }),
			"Patch overwrites the patch": answered("patch", func(c *call) { clear(c.data) }),
		},
		"calls are safe for concurrent use": {
			"Create looks first and writes later": on("create", func(c *call) {
				if c.patch(`{}`) != nil {
					c.err = apierrors.NewAlreadyExists(eventsv1.Resource("events"), c.event.Name)
					return
				}
				time.Sleep(time.Second)
				c.got, c.err = c.s.Update(c.ctx, c.event)
			}),
			"one call at a time": on("create", func(c *call) {
				if !busy.TryLock() {
					c.err = errors.New("busy")
					return
				}
				defer busy.Unlock()
				time.Sleep(time.Second)
				c.forward()
			}),
		},
		"a call after the end of its context takes effect or returns an error": {
			"Create is omitted": on("create", omittedAfterContext),
			"Patch is omitted":  on("patch", omittedAfterContext),
		},
		"a call returns when its context ends": {
			"Create does not": detached("create"),
			"Patch does not":  detached("patch"),
			"List does not":   detached("list"),
			"List returns no error": answered("list", func(c *call) {
				if c.ctx.Err() != nil {
					c.list, c.err = &eventsv1.EventList{}, nil
				}
			}),
		},
		"List returns every selected Event": {
			"only those of one namespace": on("list", func(c *call) { c.namespace = "default"; c.forward() }),
			"only those of all namespaces": on("list", func(c *call) {
				if c.list = (&eventsv1.EventList{}); c.namespace == "" {
					c.forward()
				}
			}),
			"by another field": on("list", func(c *call) {
				c.opts.FieldSelector = strings.ReplaceAll(c.opts.FieldSelector, "reportingController", "reason")
				c.forward()
			}),
			"nothing": on("list", func(*call) {}),
		},
		"List returns whole Events": {
			"only metadata": answered("list", func(c *call) {
				for i := range c.list.Items {
					c.list.Items[i] = eventsv1.Event{ObjectMeta: c.list.Items[i].ObjectMeta}
				}
			}),
			"no version": answered("list", func(c *call) {
				for i := range c.list.Items {
					c.list.Items[i].ResourceVersion = ""
				}
			}),
		},
		"List has a last page": {
			"only the first page":      answered("list", func(c *call) { c.list.Continue = "" }),
			"the first page, repeated": on("list", func(c *call) { c.opts.Continue = ""; c.forward() }),
		},
	}
}

func TestBrokenSinksAreFound(t *testing.T) {
	all := brokenSinks()
	assert.Len(t, all, len(sinkRules))
	for _, rule := range sinkRules {
		assert.NotEmpty(t, all[rule.name], "no sink breaks the rule %q", rule.name)
		for name, breakIt := range all[rule.name] {
			t.Run(rule.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					good := goodSink()
					broken := &brokenSink{Server: good.Sink.(*Server), breakIt: breakIt}
					err := rule.test(t.Context(), SinkUnderTest{Sink: broken, Stall: good.Stall})
					require.ErrorContains(t, err, fmt.Sprintf("eventstest: sink breaks the rule %q: ", rule.name))
					t.Log(err)
				})
			})
		}
	}
}

func TestRulesThatDoNotApplyAreSkipped(t *testing.T) {
	less := SinkUnderTest{Sink: struct{ events.EventSink }{goodSink().Sink}, Unversioned: true}
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

func TestViolationsAreReported(t *testing.T) {
	const broken = "Create accepts a series"
	sink := SinkUnderTest{Sink: &brokenSink{Server: &Server{}, breakIt: brokenSinks()[broken]["series are dropped"]}}
	inner := &tb{}
	for _, rule := range sinkRules {
		rule.report(inner, goodSink())
		inner.assertPassed(t)
		rule.report(inner, sink)
		reported := inner.take()
		switch rule.name {
		case broken:
			assert.Contains(t, reported, `sink breaks the rule "Create accepts a series"`)
		case "a call returns when its context ends":
			assert.Equal(t, "skipped: rule does not apply: SinkUnderTest.Stall is not set", reported)
		}
	}

	err := CheckSink(t.Context(), sink)
	assert.ErrorContains(t, err, `sink breaks the rule "Create accepts a series": an empty patch returns series "none", want "x57`)
	assert.ErrorContains(t, err, `sink breaks the rule "a patch merges labels and annotations"`)
	assert.NotContains(t, err.Error(), `sink breaks the rule "namespaces are separate"`)
}
