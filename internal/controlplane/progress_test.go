package controlplane

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakeProgress returns a progress that writes to out, and a function that advances
// its clock.
func fakeProgress(terminal bool) (p *progress, out *bytes.Buffer, advance func(time.Duration)) {
	out = &bytes.Buffer{}
	p = newProgress(out, terminal, moduleDir)
	now := p.start
	p.now = func() time.Time { return now }
	return p, out, func(d time.Duration) { now = now.Add(d) }
}

func TestProgressRecognizesErrors(t *testing.T) {
	for line, want := range map[string]bool{
		"go: downloading k8s.io/kubernetes v1.36.3": true,
		"k8s.io/api/core/v1":                        true,
		"internal/goarch":                           true,
		repository + moduleDir:                      true,
		"":                                          false,
		"# k8s.io/api/core/v1":                      false,
		"./main.go:7:2: undefined: x":               false,
		"go: updates to go.mod needed":              false,
		"main.go:3:1: syntax error":                 false,
		"\tgo get k8s.io/kubernetes":                false,
		"go: k8s.io/kubernetes@v1.36.3: reading: bad gateway": false,
	} {
		p, _, _ := fakeProgress(false)
		assert.Equal(t, want, p.line(line), "%q", line)
	}
}

func TestProgressPlain(t *testing.T) {
	p, out, advance := fakeProgress(false)
	p.tick()
	assert.Empty(t, out.String(), "there is no progress yet")

	p.line("go: downloading k8s.io/kubernetes v1.36.3")
	advance(10 * time.Second)
	p.line("go: downloading k8s.io/api v0.36.3")
	assert.False(t, p.compiling())
	p.tick()
	advance(10 * time.Second)
	p.line("internal/goarch")
	assert.True(t, p.compiling())
	p.tick()
	p.setTotal(1500)
	advance(40*time.Second + 600*time.Millisecond)
	p.line("k8s.io/api/core/v1")
	p.tick()
	p.line(repository + moduleDir)
	advance(10 * time.Second)
	p.tick()
	p.end(true)

	assert.Equal(t, []string{
		announcement(moduleDir),
		"  0s: 1 module downloaded, latest k8s.io/kubernetes v1.36.3",
		"  10s: 2 modules downloaded, latest k8s.io/api v0.36.3",
		"  20s: 1 package compiled, latest internal/goarch",
		"  1m0s: 2 of at most 1500 packages compiled, latest k8s.io/api/core/v1",
		"  1m10s: 3 packages compiled, linking",
		"controlplane: build completed after 1m10s",
		"",
	}, strings.Split(out.String(), "\n"))
}

func TestProgressOnATerminalRedrawsOneLine(t *testing.T) {
	p, out, advance := fakeProgress(true)
	p.line("internal/goarch")
	advance(time.Second)
	p.line("k8s.io/" + strings.Repeat("long/", 40))
	p.tick()
	p.end(false)

	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 3)
	assert.Equal(t, announcement(moduleDir), lines[0])
	drawn := strings.Split(lines[1], "\r")
	require.Len(t, drawn, 4)
	assert.Equal(t, "  0s: 1 package compiled, latest internal/goarch\x1b[K", drawn[1])
	assert.Len(t, strings.TrimSuffix(drawn[2], "\x1b[K"), lineWidth)
	assert.Equal(t, "\x1b[Kcontrolplane: build failed after 1s", drawn[3])
}

func TestProgressIsSilentAtFirst(t *testing.T) {
	p, out, advance := fakeProgress(true)
	advance(patience - time.Second)
	p.tick()
	assert.Empty(t, out.String())
	advance(time.Second)
	p.tick()
	p.line(repository + moduleDir)
	p.tick()
	p.end(true)
	assert.Equal(t, "\r  3s: checking what to compile\x1b[K"+
		"\r  3s: 1 package compiled, linking\x1b[K"+
		"\r\x1b[K", out.String())
}

func TestAnnouncement(t *testing.T) {
	assert.Contains(t, announcement(moduleDir), "a real kube-apiserver")
	assert.Contains(t, announcement("cmd/demo"), "compiling cmd/demo")
}

func TestProgressIsSilentAboutQuickBuilds(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		p, out, _ := fakeProgress(terminal)
		p.line(repository + moduleDir)
		p.tick()
		p.end(true)
		assert.Empty(t, out.String())
	}
}

func TestIsTerminal(t *testing.T) {
	assert.False(t, isTerminal(&bytes.Buffer{}))
	f, err := os.Open("progress_test.go")
	require.NoError(t, err)
	defer f.Close()
	assert.False(t, isTerminal(f))
}
