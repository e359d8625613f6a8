package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteFileReplaces(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	for _, content := range []string{"a longer first", "second"} {
		require.NoError(t, writeFile(name, []byte(content)))
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, content, string(data))
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary file is left")
	assert.ErrorIs(t, writeFile(filepath.Join(dir, "no", "file"), nil), os.ErrNotExist)
}

func TestReadOrCreate(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	broken := errors.New("broken")
	_, err := readOrCreate(name, func() ([]byte, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	for _, created := range []string{"content", "other"} {
		data, err := readOrCreate(name, func() ([]byte, error) { return []byte(created), nil })
		require.NoError(t, err)
		assert.Equal(t, "content", string(data))
	}
}
