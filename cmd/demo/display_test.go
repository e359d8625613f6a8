package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScreenDrawsOverWhatItDrew(t *testing.T) {
	var out strings.Builder
	c := &screen{out: &out, size: func() size { return size{80, 24} }}
	c.draw(example())
	assert.NotContains(t, out.String(), "\x1b[10A", "what was on the terminal before stays")

	out.Reset()
	c.end(example())
	assert.True(t, strings.HasPrefix(out.String(), "\x1b[10A\r 12s  the controllers"), out.String())
	assert.Equal(t, 10, strings.Count(out.String(), clearLine+"\n"), "each line is cleared to its end")
	assert.True(t, strings.HasSuffix(out.String(), "\n"+clearBelow))
}

func TestFileGetsLines(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer out.Close()
	d := newDisplay(out, false)
	s := example()
	d.changed(s, stepCreated, s.rows[0])
	d.draw(s)
	d.end(s)
	written, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Equal(t, lineHeading+line(s, stepCreated, s.rows[0])+summary(s), string(written))
}

func TestTerminalSizeOfSomethingElse(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer out.Close()
	assert.Equal(t, size{80, 24}, terminalSize(out))
}
