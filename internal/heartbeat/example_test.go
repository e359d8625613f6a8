package heartbeat_test

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/internal/heartbeat"
)

// Pod is a series with what a Schedule wants to know of it.
type Pod struct {
	name, namespace string
	slot            heartbeat.Slot[*Pod]
}

// Slot returns the place of the series in a Schedule.
func (p *Pod) Slot() *heartbeat.Slot[*Pod] { return &p.slot }

// Gate returns what a request for the series must pass.
func (p *Pod) Gate() heartbeat.Gate {
	return heartbeat.Gate{Namespace: p.namespace, Verb: "create"}
}

func Example() {
	schedule := heartbeat.NewSchedule[*Pod](nil)
	for _, name := range []string{"a", "b"} {
		schedule.Ready(&Pod{name: name, namespace: "forbidden"}, 0, false, 0)
	}
	schedule.Wait(&Pod{name: "web", namespace: "prod"}, 30*time.Minute)

	for now := time.Duration(0); now < time.Hour; now += time.Minute {
		for pod, ok := schedule.Due(now); ok; pod, ok = schedule.Due(now) {
			schedule.Ready(pod, now, false, now)
		}
		for pod, ok := schedule.Next(now); ok; pod, ok = schedule.Next(now) {
			if pod.namespace == "forbidden" && now == 0 {
				fmt.Println(now, pod.name, "denied")
				schedule.Done(pod, pod.Gate(), heartbeat.Denied, 0, now)
				schedule.Retry(pod, now+schedule.Backoff(heartbeat.Denied, 1), now)
				continue
			}
			fmt.Println(now, pod.name, "written")
			schedule.Done(pod, pod.Gate(), heartbeat.Passed, 0, now)
			schedule.Remove(pod)
		}
	}
	// Output:
	// 0s a denied
	// 2m0s b written
	// 2m0s a written
	// 30m0s web written
}
