package driver

import (
	"bytes"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/rbac"
)

// permissions are what the files of a program that grant permissions contain: roles, those that
// a ClusterServiceVersion or a template makes, and patches of roles.
var permissions = regexp.MustCompile(`(?m)\b(Cluster)?Role\b|\bClusterServiceVersion\b|\bpath:\s*["']?/rules\b|^[\s-]*rules:`)

// movesManagers reports whether no call of GetEventRecorderFor is left.
func (l *loader) movesManagers(r *Result) bool {
	return l.cfg.Options.Target != move.Record && !slices.ContainsFunc(r.Plan.Items, func(i move.Item) bool {
		return i.Rule == "GetEventRecorderFor" && i.Status == move.Left
	})
}

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
				if testFolder.MatchString(strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(p.Module.Dir))) {
					return fs.SkipDir // roles of tests
				}
				if path != p.Module.Dir && (err == nil || slices.Contains([]string{"vendor", "node_modules", "testdata", ".git"}, d.Name())) {
					return fs.SkipDir
				}
				return nil
			}
			if !d.Type().IsRegular() || !slices.Contains([]string{".yaml", ".yml", ".tpl"}, filepath.Ext(path)) {
				return nil
			}
			src, err := os.ReadFile(path)
			if before, _, ok := bytes.Cut(src, []byte("GetEventRecorderFor")); ok && strings.HasPrefix(d.Name(), ".golangci.") && l.movesManagers(r) {
				line := bytes.Count(before, []byte("\n")) + 1
				r.Manifests = append(r.Manifests, Diagnostic{token.Position{Filename: path, Line: line}, "GetEventRecorderFor", "no call needs the exception for the deprecation: remove it"})
			}
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
