package controlplane

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgress(t *testing.T) {
	var out strings.Builder
	start := time.Now()
	now := start
	p := &progress{w: &out, dir: moduleDir, start: start, now: func() time.Time { return now }}
	p.line("github.com/eventseries/eventseries/events")
	require.NoError(t, p.end(nil))
	assert.Empty(t, out.String(), "a quick build")

	for _, step := range []struct {
		after time.Duration
		text  string
	}{
		{0, "go: downloading k8s.io/kubernetes v1.36.3\n"},
		{9 * time.Second, "go: downloading k8s.io/api v0.36.3\n"},
		{0, "# k8s.io/api/core/v1\ntypes.go:1:1: no\n\tgo get k8s.io/api\ngo: updates to go.mod needed\ninternal/go"},
		{time.Second, "arch\n"},
		{time.Minute, "k8s.io/api/core/v1\n"},
	} {
		now = now.Add(step.after)
		_, err := p.Write([]byte(step.text))
		require.NoError(t, err)
	}
	failed := errors.New("exit status 1")
	err := p.end(failed)
	require.ErrorIs(t, err, failed)
	require.EqualError(t, err, "exit status 1\n# k8s.io/api/core/v1\ntypes.go:1:1: no\n\tgo get k8s.io/api\ngo: updates to go.mod needed\n")
	assert.Equal(t, `controlplane: compiling a real kube-apiserver and etcd; the first build takes 10 to 20 minutes of CPU, and 3 GB of disk
  0s: 1 packages compiled, latest: go: downloading k8s.io/kubernetes v1.36.3
  10s: 2 packages compiled, latest: internal/goarch
  1m10s: 3 packages compiled, latest: k8s.io/api/core/v1
controlplane: build failed after 1m10s
`, out.String())
}

// The estimate begins with the first package, and not with the downloads before it.
func TestProgressEstimates(t *testing.T) {
	now := time.Now()
	p := &progress{dir: moduleDir, start: now, now: func() time.Time { return now }, w: &strings.Builder{}}
	now = now.Add(time.Hour)
	for range all / 4 {
		p.line("k8s.io/api/core/v1")
	}
	now = now.Add(5 * time.Minute)
	assert.Equal(t, " of at most 2050, at most 16m0s left", p.left())
	p.dir = "cmd/demo"
	assert.Empty(t, p.left())
}
