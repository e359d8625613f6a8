package controlplane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// moduleDir is the directory of the program's module, relative to the root of the
// repository.
const moduleDir = "test/controlplane"

// findRoot returns the root of the repository that contains dir, an absolute path.
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
			return "", fmt.Errorf("controlplane: no %s/go.mod in %s or its parents; run this inside a clone of the repository", moduleDir, dir)
		}
	}
}
