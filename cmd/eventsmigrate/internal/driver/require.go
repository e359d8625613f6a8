package driver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

// missingError is the error for a package that the result imports and that the module does
// not require.
type missingError struct {
	target  move.Target
	path    string
	message string // of the go command
	mod     *modfile.File
}

func (e *missingError) Error() string {
	text := fmt.Sprintf("%v: -to=%s needs package %s; run go get %s", ErrLoad, e.target, e.path, e.query())
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}

func (*missingError) Unwrap() error { return ErrLoad }

// root is the path of the module of package events.
const root = "github.com/eventseries/eventseries"

// query returns the argument of go get that adds the module: the version that go.mod
// replaces, that of the root module, whose modules have the same version, or the newest.
func (e *missingError) query() string {
	module := root
	switch {
	case strings.HasPrefix(e.path, "k8s.io/"):
		module = "k8s.io/client-go"
	case e.path == move.ManagerPath:
		module = move.ManagerPath
	}
	version := "latest"
	if e.mod != nil {
		for _, r := range e.mod.Require {
			if r.Mod.Path == root && module == move.ManagerPath {
				version = r.Mod.Version
			}
		}
		for _, r := range e.mod.Replace {
			if r.Old.Path == module {
				version = cmp.Or(r.Old.Version, "v0.0.0")
			}
		}
	}
	return module + "@" + version
}

// maxModules bounds how many modules a run adds.
const maxModules = 3

// modFiles are copies of go.mod and go.sum with more requirements.
type modFiles struct {
	file   string // the copy of go.mod
	source string // go.mod
	tried  int    // the modules that a run has added
}

// copyModFiles copies go.mod and go.sum to dir.
func copyModFiles(cfg Config, dir string) (*modFiles, error) {
	out, err := goCommand(cfg, "env", "GOMOD", "GOWORK")
	if err != nil {
		return nil, err
	}
	mod, work, _ := strings.Cut(out, "\n")
	if mod == "" || mod == os.DevNull || work != "" && work != "off" {
		return nil, errors.New("only you know which module of the workspace needs it")
	}
	m := &modFiles{file: filepath.Join(dir, "go.mod"), source: mod}
	for from, to := range m.pairs() {
		src, err := read(cfg, from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, os.WriteFile(to, src, 0o600)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// require adds the module of a missing package to the copies.
func (m *modFiles) require(cfg Config, missing *missingError) error {
	m.tried++
	if _, err := goCommand(cfg, "get", "-modfile="+m.file, missing.query()); err != nil {
		return fmt.Errorf("%w: %w", missing, err)
	}
	return nil
}

// pairs returns the files of the module, and their copies.
func (m *modFiles) pairs() map[string]string {
	return map[string]string{m.source: m.file, strings.TrimSuffix(m.source, ".mod") + ".sum": strings.TrimSuffix(m.file, ".mod") + ".sum"}
}

// add adds the copies that differ to the changed files.
func (m *modFiles) add(r *Result) error {
	for name, changed := range m.pairs() {
		now, err := os.ReadFile(changed)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		before, err2 := os.ReadFile(name)
		if err2 != nil && !errors.Is(err2, fs.ErrNotExist) || err != nil {
			return errors.Join(err, err2)
		}
		if !bytes.Equal(before, now) {
			r.Changed[name], r.Source[name] = now, before
		}
	}
	return nil
}

// readModFile returns the go.mod of the run, or nil if there is none.
func readModFile(cfg Config) *modfile.File {
	name, err := goCommand(cfg, "env", "GOMOD")
	if err != nil {
		return nil
	}
	src, err := read(cfg, cmp.Or(cfg.modFile, name))
	if err != nil {
		return nil
	}
	f, err := modfile.Parse(name, src, nil)
	if err != nil {
		return nil
	}
	return f
}

func read(cfg Config, name string) ([]byte, error) {
	if src, ok := cfg.Overlay[name]; ok {
		return src, nil
	}
	return os.ReadFile(name)
}

// goCommand runs the go command, and returns its output.
func goCommand(cfg Config, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Dir, cmd.Env = cfg.Dir, append(os.Environ(), cfg.Env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return "", errors.New(lines[len(lines)-1])
	}
	return strings.TrimSpace(string(out)), nil
}
