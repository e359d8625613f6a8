package bench

import "time"

// Hot is what an occurrence of an ongoing series costs, for objects in one form.
type Hot struct {
	Form    string `json:"form"`
	Related bool   `json:"related"`
	Costs   []Cost `json:"costs"`
}

// MeasureHot measures the occurrences of one series on one goroutine, with turns that
// take so much CPU.
func MeasureHot(form string, related bool, names []string, rounds int, long time.Duration) Hot {
	turns := make([]turn, len(names))
	s := newSubject(form, related, 1)
	for i, name := range names {
		d := newRecorder(name, 1)
		defer d.close()
		d.begin(1, func(int) *subject { return &s })
		run := func(n int) { d.emitAbout(n, &s) }
		turns[i] = turn{recorder: name, n: calibrate(run, long), run: run}
	}
	return Hot{Form: form, Related: related, Costs: interleave(rounds, turns)}
}
