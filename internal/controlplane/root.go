package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// moduleDir is where the program's module is, seen from the repository's root.
const moduleDir = "test/controlplane"

// findRoot returns the root of the repository that dir, an absolute path, lies
// in.
func findRoot(dir string) (string, error) {
	for root := dir; ; root = filepath.Dir(root) {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(moduleDir), "go.mod"))
		if err == nil {
			return root, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("controlplane: find the repository: %w", err)
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("controlplane: neither %s nor a directory above it has %s/go.mod: run this inside a clone of the repository", dir, moduleDir)
		}
	}
}
