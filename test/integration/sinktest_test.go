package integration

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/eventstest"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestSinks runs the conformance suite with each sink of this project on the real
// server, over a network that can hold back what is sent.
func TestSinks(t *testing.T) {
	t.Parallel()
	namespaces := [2]string{apiserver.Namespace(t), apiserver.Namespace(t)}
	for name, newSink := range map[string]func(*kubernetes.Clientset) events.EventSink{"events": eventsSink, "core": coreSink} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eventstest.TestSink(t, func(t *testing.T) eventstest.SinkUnderTest {
				config := apiserver.Config(t)
				server, err := url.Parse(config.Host)
				require.NoError(t, err)
				network, err := faultproxy.Listen(t.Context(), server.Host)
				require.NoError(t, err)
				t.Cleanup(func() { assert.NoError(t, network.Close()) })
				if config.ServerName == "" {
					config.ServerName = server.Hostname() // its certificate need not know the proxy
				}
				server.Host = network.Addr()
				config.Host = server.String()
				return eventstest.SinkUnderTest{
					Sink:       newSink(apiserver.ClientsetFor(t, config)),
					Namespaces: namespaces,
					Stall: func() (resume func()) {
						network.Set(faultproxy.Fault{HoldRequests: true})
						return func() { network.Set(faultproxy.Fault{}) }
					},
				}
			})
		})
	}
}

// TestSinksOnAFakeClientset does the same with what tests of controllers often have.
// It has no resourceVersions, and knows nothing of contexts.
func TestSinksOnAFakeClientset(t *testing.T) {
	t.Parallel()
	for name, newSink := range map[string]func() events.EventSink{
		"events": func() events.EventSink { return &events.EventSinkImpl{Interface: fake.NewClientset().EventsV1()} },
		"core":   func() events.EventSink { return &compat.CoreSink{Interface: fake.NewClientset().CoreV1()} },
	} {
		t.Run(name, func(t *testing.T) {
			eventstest.TestSink(t, func(*testing.T) eventstest.SinkUnderTest {
				return eventstest.SinkUnderTest{Sink: newSink(), Unversioned: true}
			})
		})
	}
}
