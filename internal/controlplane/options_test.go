package controlplane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestArgs(t *testing.T) {
	for name, tc := range map[string]struct {
		opts    Options
		dispose bool
		want    []string
	}{
		"the zero value": {
			want: []string{"--lifeline", "--data-dir=d"},
		},
		"data that nobody will come back for": {
			dispose: true,
			want:    []string{"--lifeline", "--data-dir=d", "--remove-orphaned-data"},
		},
		"everything": {
			opts: Options{
				Port: 1, EtcdPort: 2, EventTTL: 90 * time.Second,
				Users: []User{
					{Name: "ann", Token: "s3cret"},
					{Name: "bob", Token: "t0ken", Groups: []string{"devs", "system:masters"}},
				},
				ExtraArgs: []string{"-v=2", "--", "--max-requests-inflight=7"},
			},
			want: []string{
				"--lifeline", "--data-dir=d", "--port=1", "--etcd-port=2", "--event-ttl=1m30s",
				"--user=ann:s3cret", "--user=bob:t0ken:devs,system:masters",
				"-v=2", "--", "--max-requests-inflight=7",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.opts.args("d", tc.dispose))
		})
	}
}
