package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCountOfRequests(t *testing.T) {
	l := Loop{Duration: 2 * time.Hour}
	l.count([]request{
		{verb: "list", at: 0},
		{verb: "create", at: 0, body: 700, json: true},
		{verb: "patch", at: time.Second, body: 100, json: true},
		{verb: "patch", at: 30 * time.Minute, body: 110, json: true},
		{verb: "patch", at: 70 * time.Minute, body: 120, json: true},
		{verb: "patch", at: 110 * time.Minute, body: 130, json: true},
		{verb: "patch", at: 126 * time.Minute, body: 140, json: true},
	})
	assert.Len(t, l.Sent, 121)
	assert.Equal(t, []int{2, 3, 3, 4, 5, 6, 6}, []int{l.Sent[0], l.Sent[1], l.Sent[29], l.Sent[30], l.Sent[70], l.Sent[110], l.Sent[120]})
	l.Sent = nil
	assert.Equal(t, Loop{
		Duration: 2 * time.Hour, Requests: 7, Bytes: 1300, Hourly: 2, Create: 700, Series: 100, Heartbeat: 120, Last: 140,
	}, l)
}
