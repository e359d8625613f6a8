package tracker

import corev1 "k8s.io/api/core/v1"

// Urgency orders writes that wait: the smaller goes first. News goes before
// heartbeats, which nobody waits for, and within each Warnings go before
// Normals. The zero value is the most urgent.
type Urgency uint8

const (
	NewsWarning    Urgency = iota // something new, or an end, of type Warning
	NewsNormal                    // the same of type Normal
	RefreshWarning                // a heartbeat of type Warning
	RefreshNormal                 // the same of type Normal
	// Urgencies is the number of them.
	Urgencies
)

func urgencyOf(eventType string, news bool) Urgency {
	u := RefreshWarning
	if news {
		u = NewsWarning
	}
	if eventType != corev1.EventTypeWarning {
		u++
	}
	return u
}
