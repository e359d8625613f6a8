package bench

// driver feeds a recorder so that nothing is lost.
type driver struct {
	recorder
	sink    *sink
	emitted int64
}

// emit emits n events, each about the next subject, and returns when they have been
// taken in.
func (d *driver) emit(n int, next func() *subject) {
	for n > 0 {
		some := d.some(n)
		for range some {
			d.eventf(next())
		}
		n -= some
		d.emitted += int64(some)
		d.settle(d.emitted)
	}
}

// some is how many of n events may be emitted at a time.
func (d *driver) some(n int) int {
	if size := d.batch(); size > 0 {
		return min(n, size)
	}
	return n
}

// emitAbout emits n events about one subject.
func (d *driver) emitAbout(n int, s *subject) {
	d.emit(n, func() *subject { return s })
}

// begin makes ongoing series of the events about n subjects, which are all written
// when it returns.
func (d *driver) begin(n int, subject func(i int) *subject) {
	for first := 0; first < n; {
		some := d.some(n - first)
		for range 2 { // a create, then a patch that makes it a series
			for i := range some {
				d.eventf(subject(first + i))
			}
			d.emitted += int64(some)
			if d.writes() {
				d.sink.await(d.emitted)
			}
		}
		first += some
	}
	d.settle(d.emitted)
}
