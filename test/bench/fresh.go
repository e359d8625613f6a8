package bench

// Fresh is what an event costs that is the first of its series, in turns of so many:
// until the server has it, its create included.
type Fresh struct {
	Events int    `json:"events"`
	Costs  []Cost `json:"costs"`
}

// MeasureFresh measures n events about as many objects, with a new recorder each
// time.
func MeasureFresh(n, rounds int) Fresh {
	subjects := references(n)
	var turns []turn
	for _, name := range []string{Ours, ToolsNew, ToolsOld} {
		turns = append(turns, turn{recorder: name, n: n, run: func(int) {
			d := newRecorder(name, n)
			defer d.close()
			for first := 0; first < n; {
				some := d.some(n - first)
				for i := range some {
					d.eventf(&subjects[first+i])
				}
				first += some
				d.sink.await(int64(first))
			}
		}})
	}
	return Fresh{Events: n, Costs: interleave(rounds, turns)}
}
