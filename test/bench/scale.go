package bench

import "time"

// Scale is what an occurrence costs when so many series go on, in CPU.
type Scale struct {
	Series int `json:"series"`
	// Hot emits about a few of them again and again. RoundRobin emits about all, one
	// after the other, in the order in which their objects are in memory; Random in
	// none.
	Hot        []Cost `json:"hot"`
	RoundRobin []Cost `json:"roundRobin"`
	Random     []Cost `json:"random"`
}

// hotSeries is how many series are in a hot loop, however many there are.
const hotSeries = 100

// MeasureScale measures ours and the floor with so many ongoing series. The objects
// are as many, so what it costs to look at them is part of it.
func MeasureScale(series, rounds int, long time.Duration) Scale {
	subjects := references(series)
	var few, inOrder, inNone []turn
	for _, name := range []string{Ours, Floor} {
		d := newRecorder(name, series)
		defer d.close()
		d.begin(series, func(i int) *subject { return &subjects[i] })
		// Each goes on where it was, so that a turn meets other series than the one
		// before.
		hot, forward, around := 0, 0, 0
		again := func() *subject {
			hot = (hot + 1) % hotSeries
			return &subjects[hot*series/hotSeries]
		}
		robin := func() *subject {
			forward = (forward + 1) % series
			return &subjects[forward]
		}
		stride := strideFor(series)
		random := func() *subject {
			around = (around + stride) % series
			return &subjects[around]
		}
		n := calibrate(func(n int) { d.emit(n, random) }, long)
		few = append(few, turn{recorder: name, n: n, run: func(n int) { d.emit(n, again) }})
		inOrder = append(inOrder, turn{recorder: name, n: n, run: func(n int) { d.emit(n, robin) }})
		inNone = append(inNone, turn{recorder: name, n: n, run: func(n int) { d.emit(n, random) }})
	}
	return Scale{
		Series: series,
		Hot:    interleave(rounds, few), RoundRobin: interleave(rounds, inOrder), Random: interleave(rounds, inNone),
	}
}

// strideFor returns a step that reaches every one of n places before it comes back
// to the first, and goes far each time.
func strideFor(n int) int {
	stride := int(float64(n)*0.6180339887) | 1
	for gcd(stride, n) != 1 {
		stride += 2
	}
	return stride
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
