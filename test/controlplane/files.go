package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile creates or replaces a file atomically. Only the owner can read it.
func writeFile(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// readOrCreate returns the content of a file. If there is no file, it writes the result
// of create first.
func readOrCreate(name string, create func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	if data, err = create(); err != nil {
		return nil, err
	}
	return data, writeFile(name, data)
}
