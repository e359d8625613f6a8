package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

// example is a snapshot with an Event in each state.
func example() snapshot {
	pod := subject{regarding: object{"Pod", namespace, "web-4kzqh"}, reason: "Created"}
	backup := subject{regarding: object{"Backup", namespace, "nightly"}, reason: "SnapshotFailed"}
	node := subject{regarding: object{"Node", "", "worker-3"}, reason: "NodeNotReady"}
	return snapshot{
		elapsed: 12345 * time.Millisecond,
		phase:   "the controllers emit for another 8s",
		rows: []row{
			{subject: pod, namespace: namespace, state: series.Singleton, count: 1, emitted: 1, age: 12 * time.Second, note: "container app"},
			{subject: backup, namespace: namespace, state: series.Ongoing, count: 5109, emitted: 12002, age: 11 * time.Second, note: "snapshot of orders-data failed: quota exceeded"},
			{subject: node, namespace: "kube-system", state: series.Finished, count: 4, emitted: 4, age: 9 * time.Second, note: "no news for 40s"},
		},
		emitted: 12007,
		calls:   calls{creates: 3, patches: 5},
	}
}

func TestTable(t *testing.T) {
	for name, test := range map[string]struct {
		of   snapshot
		fit  size
		want string
	}{
		"no Events": {of: snapshot{phase: "the controllers emit for another 20s"}, want: `
   0s  the controllers emit for another 20s

STATE        COUNT  EMITTED    AGE  NAMESPACE  OBJECT  REASON  NOTE

        0 occurrences emitted
        0 API calls by this recorder (0 creates, 0 patches, 0 lists)
        0 API calls with one write per occurrence
`},
		"no limits": {of: example(), want: `
  12s  the controllers emit for another 8s

STATE        COUNT  EMITTED    AGE  NAMESPACE    OBJECT          REASON          NOTE
Singleton        1        1    12s  shop         Pod/web-4kzqh   Created         container app
Ongoing      5,109   12,002    11s  shop         Backup/nightly  SnapshotFailed  snapshot of orders-data failed: quota exceeded
Finished         4        4     9s  kube-system  Node/worker-3   NodeNotReady    no news for 40s

   12,007 occurrences emitted
        8 API calls by this recorder (3 creates, 5 patches, 0 lists)
   12,007 API calls with one write per occurrence, 1,500 times as many
`},
		"80 by 24": {of: example(), fit: size{80, 24}, want: `
  12s  the controllers emit for another 8s

STATE        COUNT    AGE  OBJECT          REASON          NOTE
Singleton        1    12s  Pod/web-4kzqh   Created         container app
Ongoing      5,109    11s  Backup/nightly  SnapshotFailed  snapshot of orders-d…
Finished         4     9s  Node/worker-3   NodeNotReady    no news for 40s

   12,007 occurrences emitted
        8 API calls by this recorder (3 creates, 5 patches, 0 lists)
   12,007 API calls with one write per occurrence, 1,500 times as many
`},
		"low and narrow": {of: example(), fit: size{50, 10}, want: `
  12s  the controllers emit for another 8s

STATE        COUNT    AGE  OBJECT         REASON …
Singleton        1    12s  Pod/web-4kzqh  Created…
and 2 more Events

   12,007 occurrences emitted
        8 API calls by this recorder (3 creates, …
   12,007 API calls with one write per occurrence…
`},
	} {
		assert.Equal(t, test.want, "\n"+table(test.of, test.fit, false), name)
	}
}

func TestTableColors(t *testing.T) {
	lines := strings.Split(table(example(), size{80, 24}, true), "\n")
	assert.Equal(t, bold+"STATE        COUNT    AGE  OBJECT          REASON          NOTE"+plain, lines[2])
	assert.True(t, strings.HasPrefix(lines[3], cyan+"Singleton"+plain+"  "), lines[3])
	assert.True(t, strings.HasPrefix(lines[4], yellow+"Ongoing"+plain+"  "), lines[4])
	assert.True(t, strings.HasPrefix(lines[5], green+"Finished"+plain+"  "), lines[5])
}

func TestTableFitsAnyTerminal(t *testing.T) {
	for width := 1; width <= 130; width++ {
		for height := 9; height <= 14; height++ {
			lines := strings.Split(table(example(), size{width, height}, false), "\n")
			assert.LessOrEqual(t, len(lines), height, "including the line of the cursor")
			for _, line := range lines {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), width)
			}
		}
	}
}
