package driver

import (
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
)

// manifestDirs are the names of directories that contain the permissions of the program:
// a repository can contain those of others.
var manifestDirs = []string{
	"config", "chart", "charts", "helm", "bundle", "manifests", "deploy", "deployment", "deployments", "olm", "kustomize", "install",
}

// maxManifest bounds the size of a file.
const maxManifest = 4 << 20

// manifests reports what the roles in the YAML files of the modules lack.
func (l *loader) manifests(group bool, r *Result) error {
	var dirs []string
	for _, p := range l.roots {
		if p.Module != nil && p.Module.Main && p.Module.Dir != "" && !slices.Contains(dirs, p.Module.Dir) {
			dirs = append(dirs, p.Module.Dir)
		}
	}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				return enter(dir, path, d.Name())
			}
			if !isManifest(dir, path) {
				return nil
			}
			if info, err := d.Info(); err != nil || info.Size() > maxManifest || !info.Mode().IsRegular() {
				return err
			}
			src, err := read(l.cfg, path)
			if err != nil {
				return err
			}
			for _, f := range rbac.YAML(src, group) {
				r.Manifests = append(r.Manifests, Diagnostic{token.Position{Filename: path, Line: f.Index}, "RBAC", f.Text})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// enter skips directories without manifests of the program, and other modules.
func enter(root, path, name string) error {
	if path == root {
		return nil
	}
	switch name {
	case "vendor", "node_modules", "testdata", ".git":
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func isManifest(root, path string) bool {
	if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" && ext != ".tpl" {
		return false
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return false
	}
	dirs := strings.Split(filepath.ToSlash(filepath.Dir(rel)), "/")
	return dirs[0] == "rbac" || slices.ContainsFunc(dirs, func(d string) bool { return slices.Contains(manifestDirs, d) })
}
