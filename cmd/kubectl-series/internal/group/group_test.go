package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/query"
)

var now = time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC)

func legacy(namespace, kind, name, reason, eventType, node string, count int32, from, to time.Duration) *query.Item {
	return query.FromEvent(&eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + reason}, Reason: reason, Type: eventType,
		Regarding:       corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name},
		DeprecatedCount: count, DeprecatedFirstTimestamp: metav1.NewTime(now.Add(-from)), DeprecatedLastTimestamp: metav1.NewTime(now.Add(-to)),
		DeprecatedSource: corev1.EventSource{Component: "kubelet", Host: node},
	}, now)
}

func population() []*query.Item {
	var items []*query.Item
	for i := range 100 {
		pod := fmt.Sprintf("web-%d", i)
		items = append(items, legacy("shop", "Pod", pod, "Pulled", "Normal", fmt.Sprintf("n%d", i%2), 1, time.Hour, time.Hour))
		if i < 40 {
			items = append(items, legacy("shop", "Pod", pod, "BackOff", "Warning", fmt.Sprintf("n%d", i%2), int32(i+2), 12*time.Minute, time.Duration(i)*time.Second))
		}
	}
	return append(items,
		legacy("shop", "Pod", "db-0", "BackOff", "Warning", "n0", 90, 2*time.Hour, time.Hour),
		legacy("other", "Pod", "web-1", "BackOff", "Warning", "n0", 5, 2*time.Hour, time.Hour),
		legacy("shop", "Ingress", "a", "Sync", "Normal", "", 1, 3*time.Hour, 3*time.Hour),
		legacy("shop", "Ingress", "b", "Sync", "Normal", "", 1, 3*time.Hour, 3*time.Hour),
	)
}

func TestGroups(t *testing.T) {
	owner := func(i *query.Item) string {
		if i.Key.Regarding.Name == "db-0" || i.Key.Regarding.Kind != "Pod" {
			return ""
		}
		return "Deployment/web"
	}
	for by, want := range map[By][]string{
		Owner: {
			"BackOff × 40 Pods of Deployment/web: Ongoing shop 40/40 860",
			"BackOff × Pod/db-0: Quiet shop 0/1 90",
			"BackOff × Pod/web-1 of Deployment/web: Quiet other 0/1 5",
			"Pulled × 100 Pods of Deployment/web: Singleton shop 0/100 100",
			"Sync × 2 Ingresses: Singleton shop 0/2 2",
		},
		Reason: {
			"BackOff × 42 Pods: Ongoing  40/42 955",
			"Pulled × 100 Pods: Singleton shop 0/100 100",
			"Sync × 2 Ingresses: Singleton shop 0/2 2",
		},
		Node: {
			"BackOff × 22 Pods on n0: Ongoing  20/22 515",
			"BackOff × 20 Pods on n1: Ongoing shop 20/20 440",
			"Pulled × 50 Pods on n0: Singleton shop 0/50 50",
			"Pulled × 50 Pods on n1: Singleton shop 0/50 50",
			"Sync × 2 Ingresses: Singleton shop 0/2 2",
		},
	} {
		var got []string
		for _, g := range Of(population(), by, owner, 0) {
			got = append(got, fmt.Sprintf("%s: %s %s %d/%d %d", g.Title(), g.State, g.Namespace, g.Ongoing, len(g.Items), g.Occurrences))
		}
		assert.Equal(t, want, got, by)
	}
	limited := Of(population(), Owner, owner, 3)
	assert.Len(t, limited, 3)
	assert.Equal(t, "103 other series", limited[2].Title())
	assert.Equal(t, "Warning", limited[2].Type)
	crashing := limited[0]
	assert.Equal(t, now.Add(-12*time.Minute), crashing.First)
	assert.Equal(t, now, crashing.Last)
	assert.InDelta(t, 859./720, crashing.Rate(), 1e-9)
	assert.Equal(t, "web-0", crashing.Items[0].Key.Regarding.Name, "the latest first")
}
