package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile replaces a file in one step, readable by its owner only: whoever
// waits for it to appear never sees half of it.
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
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

// readOrCreate returns the content of a file, which is made and written first
// where there is none.
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
