package driver

import (
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
)

// manifestDirs are the names of directories that contain the permissions of the program:
// a repository can contain those of others.
var manifestDirs = regexp.MustCompile(`(^rbac|(^|/)(config|charts?|helm|bundle|manifests|deploy(ments?)?|olm|kustomize|install))/`)

// manifests reports what the roles in the YAML files of the modules lack.
func (l *loader) manifests(group bool, r *Result) error {
	seen := map[string]bool{}
	for _, p := range l.roots {
		if p.Module == nil || !p.Module.Main || seen[p.Module.Dir] {
			continue
		}
		seen[p.Module.Dir] = true
		err := filepath.WalkDir(p.Module.Dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(p.Module.Dir, path)
			if d.IsDir() {
				_, err := os.Stat(filepath.Join(path, "go.mod"))
				if rel != "." && (err == nil || slices.Contains([]string{"vendor", "node_modules", "testdata", ".git"}, d.Name())) {
					return fs.SkipDir
				}
				return nil
			}
			if !d.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".tpl"}, filepath.Ext(path)) || !manifestDirs.MatchString(filepath.ToSlash(rel)) {
				return nil
			}
			src, err := os.ReadFile(path)
			for _, f := range rbac.YAML(src, group) {
				r.Manifests = append(r.Manifests, Diagnostic{token.Position{Filename: path, Line: f.Index}, "RBAC", f.Text})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
