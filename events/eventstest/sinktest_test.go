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

func TestEventSinkImplOnAFakeClientsetIsASink(t *testing.T) {
	newSink := func(*testing.T) SinkUnderTest {
		return SinkUnderTest{Sink: &events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()}, Unversioned: true}
	}
	TestSink(t, newSink)
	assert.NoError(t, CheckSink(t.Context(), newSink(t)))
}

// call is a call of a brokenSink: its arguments and results.
type call struct {
	s         *Server
	verb      string // create, patch or list
	ctx       context.Context
	event     *eventsv1.Event
	data      []byte
	namespace string
	opts      metav1.ListOptions

	forward func() // makes the call
	list    *eventsv1.EventList
	got     *eventsv1.Event
	err     error
}

// patch sends another patch of the same Event.
func (c *call) patch(data string) *eventsv1.Event {
	event, _ := c.s.Patch(c.ctx, c.event, []byte(data))
	return event
}

func (c *call) isLook() bool { return string(c.data) == `{}` }

// brokenSink is a Server that breaks a rule: handle makes its calls.
type brokenSink struct {
	*Server
	handle func(*call)
}

func (b *brokenSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	c := call{s: b.Server, verb: "create", ctx: ctx, event: event}
	c.forward = func() { c.got, c.err = c.s.Create(c.ctx, c.event) }
	b.handle(&c)
	return c.got, c.err
}

func (b *brokenSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	c := call{s: b.Server, verb: "patch", ctx: ctx, event: event, data: data}
	c.forward = func() { c.got, c.err = c.s.Patch(c.ctx, c.event, c.data) }
	b.handle(&c)
	return c.got, c.err
}

func (b *brokenSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	c := call{s: b.Server, verb: "list", ctx: ctx, namespace: namespace, opts: opts}
	c.forward = func() { c.list, c.err = c.s.List(c.ctx, c.namespace, c.opts) }
	b.handle(&c)
	return c.list, c.err
}

// instead replaces the calls of one verb.
func instead(verb string, do func(*call)) func(*call) {
	return func(c *call) {
		if c.verb == verb {
			do(c)
		} else {
			c.forward()
		}
	}
}

// before changes the arguments of the calls of one verb.
func before(verb string, change func(*call)) func(*call) {
	return instead(verb, func(c *call) {
		c.event = c.event.DeepCopy()
		change(c)
		c.forward()
	})
}

// after changes what the calls of one verb return.
func after(verb string, change func(*call)) func(*call) {
	return instead(verb, func(c *call) {
		c.forward()
		change(c)
	})
}

// afterError is after for calls that return an error.
func afterError(verb string, is func(error) bool, change func(*call)) func(*call) {
	return after(verb, func(c *call) {
		if is(c.err) {
			change(c)
		}
	})
}

// replace replaces a part of each patch.
func replace(old, by string) func(*call) {
	return before("patch", func(c *call) { c.data = []byte(strings.ReplaceAll(string(c.data), old, by)) })
}

func toDefault(c *call) { c.event.Namespace, c.event.Regarding.Namespace = "default", "default" }

func withoutCancel(c *call) { c.ctx = context.WithoutCancel(c.ctx) }

func otherError(c *call) { c.err = errors.New("other") }

// omitLate does nothing, without an error, when the context has ended.
func omitLate(c *call) {
	if c.got = c.event; c.ctx.Err() == nil {
		c.forward()
	}
}

// addTeam makes a sink that adds a label.
func addTeam(c *call) {
	before("create", func(c *call) { metav1.SetMetaDataLabel(&c.event.ObjectMeta, "example.com/team", "a") })(c)
}

// Programs wrap a sink, so that their Events have labels of their own.
func TestSinkThatAddsLabels(t *testing.T) {
	adding := func(*testing.T) SinkUnderTest {
		good := goodSink()
		good.Sink = &brokenSink{Server: good.Sink.(*Server), handle: addTeam}
		good.Adds = []string{"example.com/team"}
		return good
	}
	TestSink(t, adding)

	undeclared := adding(t)
	undeclared.Adds = nil
	assert.ErrorContains(t, CheckSink(t.Context(), undeclared), "labels map[example.com/kept:kept example.com/removed:removed example.com/team:a]")

	ours := goodSink()
	ours.Adds = []string{"eventseries.dev/state"}
	assert.ErrorContains(t, CheckSink(t.Context(), ours), "the sink adds eventseries.dev/state: recorders need all labels")
}

// brokenSinks maps each rule to sinks that break it.
func brokenSinks() map[string]map[string]func(*call) {
	looks := 0
	var busy sync.Mutex
	return map[string]map[string]func(*call){
		"Create writes the whole Event": {
			"no related object":   before("create", func(c *call) { c.event.Related = nil }),
			"no labels":           before("create", func(c *call) { c.event.Labels = nil }),
			"no annotations":      before("create", func(c *call) { c.event.Annotations = nil }),
			"no field path":       before("create", func(c *call) { c.event.Regarding.FieldPath = "" }),
			"no regarding object": before("create", func(c *call) { c.event.Regarding.Name = "" }),
			"other reason":        before("create", func(c *call) { c.event.Reason = "Other" }),
			"other action":        before("create", func(c *call) { c.event.Action = "Other" }),
			"other type":          before("create", func(c *call) { c.event.Type = "Normal" }),
			"other controller":    before("create", func(c *call) { c.event.ReportingController = "other" }),
			"other name":          before("create", func(c *call) { c.event.Name += "x" }),
			"other instance":      before("create", func(c *call) { c.event.ReportingInstance = "other" }),
			"long notes are cut":  before("create", func(c *call) { c.event.Note = c.event.Note[:min(len(c.event.Note), 1000)] }),
			"long names are rejected": instead("create", func(c *call) {
				if c.err = apierrors.NewBadRequest("the name is too long"); len(c.event.Name) <= 63 {
					c.forward()
				}
			}),
		},
		"times keep their microseconds": {
			"eventTime in seconds":             before("create", func(c *call) { c.event.EventTime.Time = c.event.EventTime.Truncate(time.Second) }),
			"lastObservedTime in milliseconds": replace(`023Z"`, `000Z"`),
		},
		"Create accepts a series": {
			"series are dropped": before("create", func(c *call) { c.event.Series = nil }),
		},
		"Create returns the Event": {
			"no Event":      after("create", func(c *call) { c.got = nil }),
			"the argument":  after("create", func(c *call) { c.got = c.event }),
			"other version": after("create", func(c *call) { c.got.ResourceVersion += "0" }),
		},
		"Create of an existing name returns AlreadyExists": {
			"the Event is replaced": before("create", func(c *call) { _ = c.s.Delete(c.event.Namespace, c.event.Name) }),
			"the existing Event is returned": afterError("create", apierrors.IsAlreadyExists, func(c *call) {
				c.got, c.err = c.patch(`{}`), nil
			}),
			"other error": afterError("create", apierrors.IsAlreadyExists, otherError),
		},
		"namespaces are separate": {
			"all in one": func(c *call) { before(c.verb, toDefault)(c) },
			"patches elsewhere are omitted": before("patch", func(c *call) {
				if c.event.Namespace != "default" {
					c.data = []byte(`{}`)
				}
			}),
			"patches go to another": before("patch", toDefault),
		},
		"an empty patch returns the Event": {
			"it is not sent": instead("patch", func(c *call) {
				if c.got = c.event; !c.isLook() {
					c.forward()
				}
			}),
			"no Event": after("patch", func(c *call) { c.got = nil }),
			"it is a write": before("patch", func(c *call) {
				if c.isLook() {
					looks++
					c.patch(fmt.Sprintf(`{"metadata":{"finalizers":["example.com/look-%d"]}}`, looks))
				}
			}),
		},
		"a patch sets the series": {
			"only the first": instead("patch", func(c *call) {
				if c.got = c.patch(`{}`); c.got == nil || c.got.Series == nil {
					c.forward()
				}
			}),
			"the old Event is returned": instead("patch", func(c *call) {
				before := c.patch(`{}`)
				c.forward()
				c.got = before
			}),
		},
		"a patch merges labels and annotations": {
			"annotations are replaced": before("patch", func(c *call) {
				if strings.Contains(string(c.data), `"annotations"`) {
					c.patch(`{"metadata":{"annotations":null}}`)
				}
			}),
			"labels are ignored":      replace(`"labels"`, `"other"`),
			"null is an empty string": replace("null", `""`),
		},
		"a patch is idempotent": {
			"a patch without changes is rejected": instead("patch", func(c *call) {
				before := c.patch(`{}`)
				c.forward()
				if c.err == nil && !c.isLook() && before.ResourceVersion == c.got.ResourceVersion {
					c.err = apierrors.NewBadRequest("nothing has changed")
				}
			}),
		},
		"a patch changes nothing else": {
			"annotations of the Event are written": before("patch", func(c *call) {
				for key, value := range c.event.Annotations {
					c.patch(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value))
				}
			}),
		},
		"a patch of a missing Event returns NotFound": {
			"it is created": afterError("patch", apierrors.IsNotFound, func(c *call) { c.got, c.err = c.s.Create(c.ctx, c.event) }),
			"other error":   afterError("patch", apierrors.IsNotFound, otherError),
		},
		"a patch with a stale resourceVersion returns Conflict": {
			"the version is ignored": replace(`"resourceVersion"`, `"other"`),
			"it is retried": afterError("patch", apierrors.IsConflict, func(c *call) {
				c.patch(strings.ReplaceAll(string(c.data), `"resourceVersion"`, `"other"`))
			}),
			"no version matches": replace(`"resourceVersion":"`, `"resourceVersion":"0`),
		},
		"calls do not modify their arguments": {
			"Create fills in":            after("create", func(c *call) { c.event.ResourceVersion = c.got.ResourceVersion }),
			"Patch fills in":             after("patch", func(c *call) { c.event.Series = c.got.Series }),
			"Patch overwrites the patch": after("patch", func(c *call) { clear(c.data) }),
		},
		"calls are safe for concurrent use": {
			"Create looks first and writes later": instead("create", func(c *call) {
				if c.patch(`{}`) != nil {
					c.err = apierrors.NewAlreadyExists(eventsv1.Resource("events"), c.event.Name)
					return
				}
				time.Sleep(time.Second)
				c.got, c.err = c.s.Update(c.ctx, c.event)
			}),
			"one call at a time": instead("create", func(c *call) {
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
			"Create is omitted": instead("create", omitLate),
			"Patch is omitted":  instead("patch", omitLate),
		},
		"a call returns when its context ends": {
			"Create does not": before("create", withoutCancel),
			"Patch does not":  before("patch", withoutCancel),
			"List does not":   before("list", withoutCancel),
			"List returns no error": after("list", func(c *call) {
				if c.ctx.Err() != nil {
					c.list, c.err = &eventsv1.EventList{}, nil
				}
			}),
		},
		"what the sink adds stays": {
			"it is not added": func(c *call) { c.forward() },
			"a patch changes it": func(c *call) {
				addTeam(c)
				if c.verb == "patch" && !c.isLook() {
					c.got = c.patch(`{"metadata":{"labels":{"example.com/team":"b"}}}`)
				}
			},
			"a patch removes it": func(c *call) {
				addTeam(c)
				if c.verb == "patch" && !c.isLook() {
					c.got = c.patch(`{"metadata":{"labels":{"example.com/team":null}}}`)
				}
			},
		},
		"List returns every selected Event": {
			"only those of one namespace": before("list", func(c *call) { c.namespace = "default" }),
			"only those of all namespaces": instead("list", func(c *call) {
				if c.list = (&eventsv1.EventList{}); c.namespace == "" {
					c.forward()
				}
			}),
			"by another field": before("list", func(c *call) {
				c.opts.FieldSelector = strings.ReplaceAll(c.opts.FieldSelector, "reportingController", "reason")
			}),
			"by another label": before("list", func(c *call) {
				c.opts.LabelSelector = strings.ReplaceAll(c.opts.LabelSelector, "notin", "in")
			}),
			"nothing": instead("list", func(*call) {}),
		},
		"List returns whole Events": {
			"only metadata": after("list", func(c *call) {
				for i := range c.list.Items {
					c.list.Items[i] = eventsv1.Event{ObjectMeta: c.list.Items[i].ObjectMeta}
				}
			}),
			"no version": after("list", func(c *call) {
				for i := range c.list.Items {
					c.list.Items[i].ResourceVersion = ""
				}
			}),
		},
		"List has a last page": {
			"only the first page":      after("list", func(c *call) { c.list.Continue = "" }),
			"the first page, repeated": before("list", func(c *call) { c.opts.Continue = "" }),
		},
	}
}

func TestBrokenSinksAreFound(t *testing.T) {
	all := brokenSinks()
	assert.Len(t, all, len(sinkRules))
	for _, rule := range sinkRules {
		assert.NotEmpty(t, all[rule.name], "no sink breaks the rule %q", rule.name)
		for name, handle := range all[rule.name] {
			t.Run(rule.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					good := goodSink()
					broken := &brokenSink{Server: good.Sink.(*Server), handle: handle}
					err := rule.test(t.Context(), SinkUnderTest{Sink: broken, Stall: good.Stall, Adds: []string{"example.com/team"}})
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
	assert.Equal(t, 6, skipped)
}

func TestViolationsAreReported(t *testing.T) {
	const broken = "Create accepts a series"
	sink := SinkUnderTest{Sink: &brokenSink{Server: &Server{}, handle: brokenSinks()[broken]["series are dropped"]}}
	inner := &tb{}
	for _, rule := range sinkRules {
		rule.report(inner, goodSink())
		if reported := inner.take(); rule.name != "what the sink adds stays" {
			assert.Empty(t, reported)
		}
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
