package driver

import (
	"bytes"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
)

// permissions are what the files of a program that grant permissions contain: roles, those that
// a ClusterServiceVersion or a template makes, and patches of roles.
var permissions = regexp.MustCompile(`(?m)\b(Cluster)?Role\b|\bClusterServiceVersion\b|\bpath:\s*["']?/rules\b|^[\s-]*rules:`)

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
			if d.IsDir() {
				_, err := os.Stat(filepath.Join(path, "go.mod"))
				if path != p.Module.Dir && (err == nil || slices.Contains([]string{"vendor", "node_modules", "testdata", ".git"}, d.Name())) {
					return fs.SkipDir
				}
				return nil
			}
			if !d.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".tpl"}, filepath.Ext(path)) {
				return nil
			}
			src, err := os.ReadFile(path)
			if !bytes.Contains(src, []byte("events")) || !permissions.Match(src) {
				return err
			}
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
