// Package guards emits what a cache or a rate limiter lets through.
package guards

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

type limiter struct{}

func (limiter) TryAccept() bool { return true }

type keyCache struct{}

func (keyCache) Get(string) (any, bool) { return nil, false }

func (keyCache) Read(string) error { return nil }

type publisher struct {
	record.EventRecorder
	limiter limiter
	cache   keyCache
	known   sync.Map
	seen    map[string]time.Time
	texts   map[string]string
	pods    map[string]*corev1.Pod
}

type event struct {
	pod                  *corev1.Pod
	key, reason, message string
}

func (p *publisher) isNew(key string) bool {
	_, ok := p.cache.Get(key)
	return !ok
}

func (p *publisher) publish(events ...event) {
	for _, e := range events {
		p.publishOne(e)
	}
}

func (p *publisher) publishOne(e event) {
	if e.key != "" && !p.isNew(e.key) {
		return
	}
	message := p.texts[e.reason]
	p.Event(e.pod, "Normal", e.reason, message+e.message) // want `the reason is the field reason of guards.event` `a cache or a rate limiter`
}

func (p *publisher) warn(pod *corev1.Pod, message string) {
	if !p.limiter.TryAccept() {
		return
	}
	p.Event(pod, "Warning", "Failed", message) // want `a cache or a rate limiter`
}

func (p *publisher) nested(pods []*corev1.Pod) {
	for _, pod := range pods {
		if _, ok := p.known.LoadOrStore(pod.Name, true); ok {
			continue
		}
		p.Event(pod, "Warning", "Failed", "a") // want `a cache or a rate limiter`
	}
	if p.limiter.TryAccept() {
		p.Event(pods[0], "Warning", "Failed", "a") // want `a cache or a rate limiter`
	}
	go func() {
		if time.Since(p.seen["a"]) > time.Minute {
			p.seen["a"] = time.Now()
			p.Event(pods[0], "Warning", "Failed", "a") // want `a cache or a rate limiter`
		}
	}()
}

// work is what happens seldom, and not only its events.
func (p *publisher) work(pod *corev1.Pod, start func() error) error {
	if !p.limiter.TryAccept() {
		return nil
	}
	if err := start(); err != nil {
		p.Event(pod, "Warning", "Failed", "a")
		return err
	}
	p.Event(pod, "Normal", "Started", "a")
	return nil
}

// lookups say nothing about events.
func (p *publisher) lookups(pod *corev1.Pod, reason string) {
	if _, ok := p.texts[reason]; !ok {
		return
	}
	if err := p.cache.Read(pod.Name); err != nil {
		return
	}
	if p.pods[pod.Name] == nil {
		p.pods[pod.Name] = pod
		p.add(pod)
		p.Event(pod, "Normal", "Added", "a")
	}
	p.Event(pod, "Normal", reason, "a") // want `the reason is variable`
}

func (p *publisher) add(*corev1.Pod) {}
