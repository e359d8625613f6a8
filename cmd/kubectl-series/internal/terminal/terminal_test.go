package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOutputsThatAreNoTerminals(t *testing.T) {
	assert.Equal(t, Terminal{}, Of(&bytes.Buffer{}, Auto))
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	assert.Equal(t, Terminal{}, Of(f, Auto))
	assert.Equal(t, Terminal{Color: true}, Of(f, Always))
}

func TestPaint(t *testing.T) {
	assert.Equal(t, "a", Terminal{}.Paint("a", Red))
	assert.Equal(t, "a", Terminal{Color: true}.Paint("a", Plain))
	assert.Equal(t, "\x1b[31ma\x1b[0m", Terminal{Color: true}.Paint("a", Red))
}
