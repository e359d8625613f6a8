package heartbeat_test

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// Pod is a loop that a program keeps track of: what Check wants to know of it,
// and its place in the queue.
type Pod struct {
	Name string // for the output
	tracker.Status
	slot int32
}

// Slot makes *Pod an Item.
func (p *Pod) Slot() *int32 { return &p.slot }

func Example() {
	intervals := heartbeat.Intervals{First: 10 * time.Minute}
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	web := &Pod{Name: "web", Status: tracker.Status{State: series.Ongoing, Last: began, Written: began}}
	job := &Pod{Name: "job", Status: tracker.Status{State: series.Singleton, Last: began}}

	var queue heartbeat.Queue[*Pod]
	for _, pod := range []*Pod{web, job} {
		_, next := intervals.Check(pod.Status, began)
		queue.Set(pod, next)
	}

	buf := make([]*Pod, 16)
	for queue.Len() > 0 {
		now, _ := queue.Next() // a program would sleep until then
		if now.Before(began.Add(40 * time.Minute)) {
			web.Last = now // it fails all the time, for 40 minutes
		}
		for _, pod := range buf[:queue.PopDue(buf, now)] {
			due, next := intervals.Check(pod.Status, now)
			switch due {
			case heartbeat.None:
				queue.Set(pod, next)
				continue
			case heartbeat.Heartbeat:
				pod.Written = now
				pod.Heartbeats++
				_, next = intervals.Check(pod.Status, now)
				queue.Set(pod, next)
			case heartbeat.Finish, heartbeat.Forget: // that was it
			}
			fmt.Println(now.Format(time.TimeOnly), pod.Name, due)
		}
	}
	// Output:
	// 12:06:00 job Forget
	// 12:10:00 web Heartbeat
	// 12:30:00 web Heartbeat
	// 12:42:00 web Finish
}

func ExampleIntervals_Check() {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	status := tracker.Status{State: series.Ongoing, Last: began.Add(25 * time.Minute), Written: began}

	var intervals heartbeat.Intervals // heartbeats every 30 minutes, finished after 6
	for _, minutes := range []time.Duration{26, 30, 31} {
		due, next := intervals.Check(status, began.Add(minutes*time.Minute))
		fmt.Println(int(minutes), due, next.Format(time.TimeOnly))
	}
	// Output:
	// 26 None 12:30:00
	// 30 Heartbeat 00:00:00
	// 31 Finish 00:00:00
}

func ExampleIntervals_Validate() {
	fmt.Println(heartbeat.Intervals{Heartbeat: time.Minute, First: time.Hour}.Validate())
	// Output:
	// heartbeat: Intervals.First is longer than Heartbeat: 1h0m0s > 1m0s
}
