package bench

import "time"

// Fresh is the cost of the first event of a series, until the sink has it.
type Fresh struct {
	Events  int       `json:"events"`
	Costs   Costs     `json:"costs"`
	Latency []Latency `json:"latency"`
}

// Latency is how long it takes from the call until the sink gets the create, in nanoseconds,
// while the recorder has nothing else to do. It is the spread of the medians of rounds.
type Latency struct {
	Recorder string `json:"recorder"`
	Time     Spread `json:"time"`
}

// MeasureFresh measures n events about n objects, with a new recorder in each turn.
func MeasureFresh(n, rounds int) Fresh {
	subjects := references(n)
	var turns []turn
	for _, name := range Recorders {
		turns = append(turns, turn{recorder: name, n: n, run: func(int) {
			d := newRecorder(name, n)
			defer d.close()
			d.inBatches(n, func(first, size int) {
				for i := range size {
					d.eventf(&subjects[first+i])
				}
				d.sink.await(int64(first + size))
			})
		}})
	}
	return Fresh{Events: n, Costs: interleave(rounds, turns), Latency: measureLatency(subjects[:min(n, oneByOne)], rounds)}
}

// oneByOne is the number of events in a round of measureLatency.
const oneByOne = 500

// measureLatency emits an event about each subject when the former one is written.
func measureLatency(subjects []subject, rounds int) []Latency {
	medians, results := make([][]float64, len(Recorders)), make([]Latency, len(Recorders))
	for round := range rounds {
		for i := range Recorders { // in an order that rotates
			i = (i + round) % len(Recorders)
			d := newRecorder(Recorders[i], len(subjects))
			took := make([]float64, len(subjects))
			for at := range subjects {
				begin := time.Now()
				d.eventf(&subjects[at])
				d.sink.await(int64(at + 1))
				took[at] = float64(time.Since(begin))
			}
			d.close()
			medians[i] = append(medians[i], SpreadOf(took).Median)
		}
	}
	for i, name := range Recorders {
		results[i] = Latency{Recorder: name, Time: SpreadOf(medians[i])}
	}
	return results
}
