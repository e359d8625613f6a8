package controlplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestArgs(t *testing.T) {
	opts := Options{
		Port: 1, EtcdPort: 2, EventTTL: 90 * time.Second,
		Users: []User{
			{Name: "ann", Token: "s3cret"},
			{Name: "bob", Token: "t0ken", Groups: []string{"devs", "system:masters"}},
		},
		ExtraArgs: []string{"-v=2", "--", "--max-requests-inflight=7"},
	}
	assert.Equal(t, []string{
		"--lifeline", "--data-dir=d", "--port=1", "--etcd-port=2", "--event-ttl=1m30s",
		"--user=ann:s3cret", "--user=bob:t0ken:devs,system:masters",
		"-v=2", "--", "--max-requests-inflight=7",
	}, opts.args("d", false))
	assert.Equal(t, []string{"--lifeline", "--data-dir=d"}, Options{}.args("d", false))
	assert.Equal(t, []string{"--lifeline", "--data-dir=d", "--remove-orphaned-data"}, Options{}.args("d", true))
}
