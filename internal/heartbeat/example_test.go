package heartbeat_test

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/internal/heartbeat"
)

// Pod is a series with what a Schedule wants to know of it.
type Pod struct {
	Name, Namespace string
	slot            heartbeat.Slot[*Pod]
}

func (p *Pod) Slot() *heartbeat.Slot[*Pod] { return &p.slot }
func (p *Pod) Gate() heartbeat.Gate        { return heartbeat.Gate{Namespace: p.Namespace, Verb: "create"} }

func Example() {
	schedule := heartbeat.NewSchedule[*Pod](nil)
	for _, name := range []string{"a", "b"} {
		schedule.Ready(&Pod{Name: name, Namespace: "forbidden"}, 0, false, 0)
	}
	schedule.Wait(&Pod{Name: "web", Namespace: "prod"}, 30*time.Minute)

	for now := time.Duration(0); now < time.Hour; now += time.Minute {
		for pod, ok := schedule.Due(now); ok; pod, ok = schedule.Due(now) {
			schedule.Ready(pod, now, false, now)
		}
		for pod, ok := schedule.Next(now); ok; pod, ok = schedule.Next(now) {
			if pod.Namespace == "forbidden" && now == 0 {
				fmt.Println(now, pod.Name, "denied")
				schedule.Done(pod, pod.Gate(), heartbeat.Denied, 0, now)
				schedule.Retry(pod, now+schedule.Backoff(heartbeat.Denied, 1), now)
				continue
			}
			fmt.Println(now, pod.Name, "written")
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
