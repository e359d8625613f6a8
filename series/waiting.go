package series

// Waiting returns for how many series there is something to be written, those
// included whose write is under way or has failed. It looks at all of them, so it
// is for log lines and not for every second.
func (t *Table) Waiting() int {
	n := 0
	count := func(entries []*Entry) {
		for _, e := range entries {
			if e.waits() {
				n++
			}
		}
	}
	// One shard after the other, so that nobody waits for long.
	for i := range t.shards {
		t.mu.Lock()
		count(t.shards[i].all())
		t.mu.Unlock()
	}
	t.mu.Lock()
	count(t.detached.all())
	t.mu.Unlock()
	return n
}
