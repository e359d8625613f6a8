// Command waits has functions that set up recorders. Some of them wait for the end of the
// program, and some only look so.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx := ctrl.SetupSignalHandler()
	stop := ctx.Done()
	setup(nil, stop)
	c := &controller{synced: make(chan struct{})}
	c.setup(stop)
	c.synchronize()
	c.fields(ctx)
	c.perhaps(ctx, true)
	c.hangUp()
	once(ctx)
	timeout, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	shortly(timeout)
	cancelled(ctx)
	ready(c.synced)
	starts(ctx)
	go c.Run(ctx)
	go loop(stop)
	go selects(ctx)
	go signals()
	go until(stop)
	go func() { _ = manages(ctx, nil) }()
	go reload()
	go early()
	go limited(withLimit(ctx))
	go decorated(withName(ctx))
	go named(wait.ContextForChannel(stop))
	each(ctx, job)
	go both()
	if err := run(ctx); err != nil {
		os.Exit(1)
	}
}

// The last call of main ends with the program.
func run(ctx context.Context) error {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "run"}))
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("ended")
}

func emit(record.EventRecorder) {}

type controller struct {
	recorder record.EventRecorder
	synced   chan struct{}
	done     <-chan struct{}
}

// Start of a factory does not wait.
func setup(factory informers.SharedInformerFactory, stop <-chan struct{}) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "setup"}))
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
}

func (c *controller) setup(stop <-chan struct{}) {
	broadcaster := record.NewBroadcaster()
	c.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "setup"})
	go func() { <-stop }()
}

// The channel of a field closes early.
func (c *controller) synchronize() {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "synchronize"}))
	<-c.synced
}

// The recorder outlives the function.
func (c *controller) fields(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "fields"})
	c.recorder = recorder
	<-ctx.Done()
}

func (c *controller) perhaps(ctx context.Context, wait bool) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "perhaps"}))
	if !wait {
		return
	}
	<-ctx.Done()
}

// The signal does not end the program.
func (c *controller) hangUp() {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "hangUp"}))
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	<-received
}

// One of the cases can be ready early.
func once(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "once"}))
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// The caller passes a context with a timeout.
func shortly(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "shortly"}))
	<-ctx.Done()
}

func cancelled(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "cancelled"}))
	time.AfterFunc(time.Second, cancel)
	<-ctx.Done()
}

func ready(ready <-chan struct{}) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "ready"}))
	<-ready
}

// A function literal does not wait here.
func starts(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "starts"}))
	defer func() { <-ctx.Done() }()
	go wait.UntilWithContext(ctx, func(context.Context) {}, time.Second)
}

// Run waits, unless it fails.
func (c *controller) Run(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "Run"}))
	if !cache.WaitForCacheSync(ctx.Done()) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.work(ctx)
}

func (c *controller) work(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) {}, time.Second)
}

func loop(stop <-chan struct{}) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "loop"}))
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
			break
		}
	}
}

func selects(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "selects"}))
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, os.Interrupt, syscall.SIGTERM)
	select {
	case <-ctx.Done():
	case <-terminate:
	}
}

func signals() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "signals"}))
	<-ctx.Done()
}

func until(stopCh <-chan struct{}) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "until"}))
	wait.Until(func() {}, time.Second, stopCh)
}

func manages(ctx context.Context, mgr ctrl.Manager) error {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "manages"}))
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// The signal asks for something else.
func reload() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGHUP)
	defer cancel()
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "reload"}))
	<-ctx.Done()
}

func early() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "early"}))
	time.AfterFunc(time.Second, cancel)
	<-ctx.Done()
}

// A function of the program returns a context that ends earlier.
func limited(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "limited"}))
	<-ctx.Done()
}

func withLimit(ctx context.Context) context.Context {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	context.AfterFunc(limited, cancel)
	return limited
}

func decorated(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "decorated"}))
	<-ctx.Done()
}

type name struct{}

func withName(ctx context.Context) context.Context { return context.WithValue(ctx, name{}, "a") }

func named(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "named"}))
	<-ctx.Done()
}

// Nobody can tell which context a function value gets.
func job(ctx context.Context) {
	broadcaster := record.NewBroadcaster()
	emit(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "job"}))
	<-ctx.Done()
}

func each(ctx context.Context, f func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	f(ctx)
}

// Each broadcaster needs its own Shutdown, also if both go to the same function.
func both() {
	first := record.NewBroadcaster()
	defer first.Shutdown()
	second := record.NewBroadcaster()
	third := record.NewBroadcaster()
	for _, b := range []record.EventBroadcaster{first, second, third} {
		emit(b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "both"}))
	}
	stop(third.Shutdown)
}

func stop(func()) {}
