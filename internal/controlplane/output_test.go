package controlplane

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTailKeepsTheLastCompleteLines(t *testing.T) {
	var all bytes.Buffer
	log := &tail{w: &all}
	assert.Empty(t, log.String())
	fmt.Fprint(log, "first\n")
	assert.Equal(t, "first", log.String())

	for i := range 2000 {
		fmt.Fprintf(log, "line %04d\n", i)
	}
	assert.Equal(t, 2001, strings.Count(all.String(), "\n"), "it forwards everything")
	kept := strings.Split(log.String(), "\n")
	assert.Greater(t, len(kept), 500)
	assert.LessOrEqual(t, len(log.String()), tailSize)
	for i, line := range kept {
		assert.Equal(t, fmt.Sprintf("line %04d", 2000-len(kept)+i), line)
	}
}

func TestFirstLine(t *testing.T) {
	f := &firstLine{line: make(chan string, 1)}
	for _, s := range []string{"rea", "dy", " now\r\nand", " so\non\n"} {
		n, err := f.Write([]byte(s))
		require.NoError(t, err)
		assert.Equal(t, len(s), n)
	}
	assert.Equal(t, "ready now", <-f.line)
	assert.Empty(t, f.line)
}

func TestParseReady(t *testing.T) {
	addr, kubeconfig, err := parseReady("ready https://127.0.0.1:6443 kubeconfig=/a path/kubeconfig")
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:6443", addr.String())
	assert.Equal(t, "/a path/kubeconfig", kubeconfig)

	for _, line := range []string{"", "ready", "ready https://127.0.0.1:1", "ready https:// kubeconfig=x", "ready https://127.0.0.1:1 kubeconfig="} {
		_, _, err := parseReady(line)
		assert.Error(t, err, "%q", line)
	}
}
