package driver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// missingError is the error for a package that the result imports and that the module does
// not require.
type missingError struct{ path, query string }

func (e *missingError) Error() string {
	return fmt.Sprintf("%v: the result needs package %s; run go get %s", ErrLoad, e.path, e.query)
}

func (*missingError) Unwrap() error { return ErrLoad }

// requirements are copies of go.mod and go.sum with what the result needs.
type requirements struct {
	cfg  Config
	dir  string // of the copies, "" if there are none
	mod  string // go.mod
	have map[string]bool
}

// require adds the modules of packages that are missing.
func (r *requirements) require(paths []string) error {
	if r.list(paths...) {
		return nil
	}
	for _, path := range paths {
		r.have[path] = true
		if r.list(path) {
			continue
		}
		missing := &missingError{path, r.query(path)}
		if err := r.copy(); err != nil {
			return fmt.Errorf("%w: %w", missing, err)
		}
		if _, err := goCommand(r.cfg, "get", "-modfile="+r.cfg.modFile, missing.query); err != nil {
			return fmt.Errorf("%w: %w", missing, err)
		}
	}
	return nil
}

// list reports whether the module requires packages.
func (r *requirements) list(paths ...string) bool {
	_, err := goCommand(r.cfg, slices.Concat([]string{"list", "-find", "-f={{.Name}}"}, r.cfg.flags(), paths)...)
	return err == nil
}

// importable are the packages that the result of the move can import.
var importable = slices.Concat(move.Imports, []string{move.ManagerPath})

// root is the path of the module of package events.
const root = "github.com/eventseries/eventseries"

// query returns the argument of go get that adds the module of a package: with the version
// that go.mod replaces, that of the root module, whose modules have the same version, or the
// newest.
func (r *requirements) query(path string) string {
	module, version := root, "latest"
	if path == move.ManagerPath {
		module = path
	}
	name, _ := goCommand(r.cfg, "env", "GOMOD")
	src, _ := os.ReadFile(name)
	if f, err := modfile.Parse(name, src, nil); err == nil {
		for _, m := range f.Require {
			if m.Mod.Path == root && module != root {
				version = m.Mod.Version
			}
		}
		for _, m := range f.Replace {
			if m.Old.Path == module {
				version = cmp.Or(m.Old.Version, "v0.0.0")
			}
		}
	}
	return module + "@" + version
}

// copy copies go.mod and go.sum, unless that is done.
func (r *requirements) copy() error {
	if r.dir != "" {
		return nil
	}
	out, err := goCommand(r.cfg, "env", "GOMOD", "GOWORK")
	if err != nil {
		return err
	}
	mod, work, _ := strings.Cut(out, "\n")
	if mod == "" || mod == os.DevNull {
		return errors.New("run eventsmigrate in a directory below a go.mod")
	}
	if work != "" && work != "off" {
		return errors.New("only you know which module of the workspace needs it")
	}
	if r.dir, err = os.MkdirTemp("", "eventsmigrate"); err != nil {
		return err
	}
	r.mod, r.cfg.modFile = mod, filepath.Join(r.dir, "go.mod")
	for from, to := range r.pairs() {
		if src, err := os.ReadFile(from); err == nil {
			if err := os.WriteFile(to, src, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// pairs returns the files of the module, and their copies.
func (r *requirements) pairs() map[string]string {
	return map[string]string{r.mod: r.cfg.modFile, strings.TrimSuffix(r.mod, ".mod") + ".sum": filepath.Join(r.dir, "go.sum")}
}

// tidy makes what the result imports direct requirements, and keeps the toolchain: go get does not.
func tidy(before, changed []byte) []byte {
	f, err := modfile.Parse("go.mod", changed, nil)
	old, err2 := modfile.Parse("go.mod", before, nil)
	if err != nil || err2 != nil {
		return changed
	}
	for _, r := range f.Require {
		r.Indirect = r.Indirect && !strings.HasPrefix(r.Mod.Path, root)
	}
	f.SetRequireSeparateIndirect(f.Require)
	if old.Toolchain != nil && f.Toolchain == nil && version.Compare(old.Toolchain.Name, "go"+f.Go.Version) > 0 {
		_ = f.AddToolchainStmt(old.Toolchain.Name)
	}
	f.Cleanup()
	return modfile.Format(f.Syntax)
}

// add adds the copies that differ to the changed files.
func (r *requirements) add(result *Result) error {
	for name, changed := range r.pairs() {
		now, err := os.ReadFile(changed)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		before, err2 := os.ReadFile(name)
		if err2 != nil && !errors.Is(err2, fs.ErrNotExist) || err != nil {
			return errors.Join(err, err2)
		}
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s is a link: run go get %s@latest", name, root)
		}
		if name == r.mod {
			now = tidy(before, now)
		}
		if !bytes.Equal(before, now) {
			result.Changed[name], result.Source[name] = now, before
		}
	}
	return nil
}

// goCommand runs the go command, and returns its output.
func goCommand(cfg Config, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Dir = cfg.Dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		last := len(lines) - 1
		for last > 0 && strings.HasPrefix(lines[last], "\t") { // it continues the line before
			last--
		}
		return "", errors.New(strings.Join(lines[last:], ""))
	}
	return strings.TrimSpace(string(out)), nil
}
