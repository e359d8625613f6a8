package cli

import (
	"cmp"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/query"
)

// clients are the clients of a reader. Those of all groups would take longer to start.
type clients struct {
	events *typedeventsv1.EventsV1Client
	core   *typedcorev1.CoreV1Client
}

func (c clients) EventsV1() typedeventsv1.EventsV1Interface { return c.events }
func (c clients) CoreV1() typedcorev1.CoreV1Interface       { return c.core }

// config returns the configuration of the clients.
func (e *environment) config() (*rest.Config, error) {
	if e.offline() {
		return nil, errOffline
	}
	config, err := e.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // a command sends one request after the other, and the server limits them
	return config, nil
}

// reader returns a reader of Events. It shows progress, and prints warnings.
func (e *environment) reader(opts query.Options) (*query.Reader, *progress, error) {
	p := newProgress(e.ErrOut, clock.RealClock{})
	opts.PageSize, opts.OnProgress, opts.Clock = e.pageSize(), p.update, e
	if opts.OnWarning == nil {
		opts.OnWarning = func(err error) {
			p.clear()
			e.warnOfEvents(err)
		}
	}
	if e.offline() {
		err := e.load() // unless the command has done so; a completion has not
		return query.NewFileReader(e.events, opts), p, err
	}
	config, err := e.config()
	if err != nil {
		return nil, nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = config.ContentType + ",application/json"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	var c clients
	if c.events, err = typedeventsv1.NewForConfigAndClient(config, client); err != nil {
		return nil, nil, err
	}
	if c.core, err = typedcorev1.NewForConfigAndClient(config, client); err != nil {
		return nil, nil, err
	}
	return query.NewReader(c, opts), p, nil
}

// pageSize returns the page size of lists: -1 for one page.
func (e *environment) pageSize() int64 { return cmp.Or(e.chunkSize, -1) }
