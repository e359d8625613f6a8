package main

import (
	"k8s.io/client-go/kubernetes"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	clientevents "k8s.io/client-go/tools/events"
)

// getter has clients of two groups, and is no clientset.
type getter interface {
	kubernetes.Interface
	typedeventsv1.EventsGetter
}

type both struct{ kubernetes.Interface }

type partial interface {
	CoreV1() any
	EventsV1() typedeventsv1.EventsV1Interface
}

func sinks(newClient func() *kubernetes.Clientset, b both, g getter, p partial, client typedeventsv1.EventsV1Interface) (list []clientevents.EventBroadcaster) {
	sink := &clientevents.EventSinkImpl{Interface: newClient().EventsV1()}
	list = append(list, clientevents.NewBroadcaster(sink))
	list = append(list, clientevents.NewBroadcaster(&clientevents.EventSinkImpl{b.EventsV1()}))
	list = append(list, clientevents.NewBroadcaster(&clientevents.EventSinkImpl{
		Interface: g.EventsV1(),
	}))
	shared := &clientevents.EventSinkImpl{Interface: newClient().EventsV1()}
	list = append(list, clientevents.NewBroadcaster(shared), clientevents.NewBroadcaster(shared))
	list = append(list, clientevents.NewBroadcaster(&clientevents.EventSinkImpl{Interface: p.EventsV1()}))
	list = append(list, clientevents.NewBroadcaster(&clientevents.EventSinkImpl{Interface: client}))
	list = append(list, clientevents.NewBroadcaster(&clientevents.EventSinkImpl{
		Interface: newClient().EventsV1(), // of the events
	}))
	return list
}
