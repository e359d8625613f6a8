package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLines(t *testing.T) {
	s := example()
	assert.Equal(t, `  TIME  CHANGE     STATE        COUNT  EVENT
 12.3s  created    Singleton        1  shop Pod/web-4kzqh Created: container app
 12.3s  heartbeat  Ongoing      5,109  shop Backup/nightly SnapshotFailed: snapshot of orders-data failed: quota exceeded
 12.3s  finished   Finished         4  kube-system Node/worker-3 NodeNotReady: no news for 40s
 12.3s  ---------  12,007 occurrences, 8 API calls; one write for each would have been 12,007: 1,500 times as many (the controllers emit for another 8s)
`, lineHeading+line(s, stepCreated, s.rows[0])+line(s, stepHeartbeat, s.rows[1])+line(s, stepFinished, s.rows[2])+summary(s))
}
