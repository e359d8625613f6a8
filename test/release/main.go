// Command release rehearses a release on a copy of the repository, with a module proxy of
// files: the steps of docs/releasing.md, the installation of the programs, and a program of
// a user that requires the released modules. Nothing leaves the machine, and no other
// module cache gets the modules.
//
//	cd test && go run ./release -version v0.1.0
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// root is the path of the root module.
const root = "github.com/eventseries/eventseries"

// released are the directories of the released modules.
var released = []string{"", "controllerruntime", "cmd/kubectl-series", "cmd/eventsmigrate"}

// outside is the program of a user.
//
//go:embed testdata/outside
var outside embed.FS

func main() {
	version := flag.String("version", "v0.1.0", "the version to release")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := rehearse(ctx, *version); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// rehearsal is a release on a copy. After an error, its steps do nothing.
type rehearsal struct {
	version string
	dir     string // of everything that the rehearsal writes
	env     []string
	err     error
}

func rehearse(ctx context.Context, version string) error {
	repository, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	// The go command ignores directories with a dot, so ./... does not match the cache.
	r := &rehearsal{version: version, dir: filepath.Join(repository, "bin", ".rehearsal")}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.release(ctx, repository)
	r.install(ctx)
	r.use(ctx)
	if r.err == nil {
		fmt.Printf("release: %s of %d modules can be released, installed, and required\n", version, len(released))
	}
	return r.err
}

// prepare removes what an earlier rehearsal left, except for the modules of others, and
// sets the environment of all commands.
func (r *rehearsal) prepare(ctx context.Context) error {
	modules := r.path("mod")
	stale := []string{filepath.Join(modules, "github.com", "eventseries"), filepath.Join(modules, "cache", "download", "github.com", "eventseries")}
	entries, err := os.ReadDir(r.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if entry.Name() != "mod" {
			stale = append(stale, r.path(entry.Name()))
		}
	}
	for _, name := range stale {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.path("proxy"), 0o755); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "env", "-json", "GOMODCACHE", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		return err
	}
	var user struct{ GOMODCACHE, GOPROXY, GOFLAGS string }
	if err := json.Unmarshal(out, &user); err != nil {
		return err
	}
	r.env = append(os.Environ(),
		"GOPROXY="+strings.Join([]string{fileURL(r.path("proxy")), fileURL(filepath.Join(user.GOMODCACHE, "cache", "download")), user.GOPROXY}, ","),
		"GONOSUMDB="+root+","+root+"/*", // nobody else knows the modules
		"GOMODCACHE="+modules,
		"GOFLAGS="+user.GOFLAGS+" -modcacherw",
		"GOWORK=off",
		"GOBIN="+r.path("gobin"),
		"TAG_FLAGS=", // no signature
		"GIT_AUTHOR_NAME=Rehearsal", "GIT_AUTHOR_EMAIL=rehearsal@localhost",
		"GIT_COMMITTER_NAME=Rehearsal", "GIT_COMMITTER_EMAIL=rehearsal@localhost",
	)
	return nil
}

// release does the steps of docs/releasing.md.
func (r *rehearsal) release(ctx context.Context, repository string) {
	// Not git clone: the repository can have another branch named main.
	r.run(ctx, r.dir, "git", "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
	r.run(ctx, repository, "git", "push", "--quiet", r.path("origin.git"), "HEAD:refs/heads/main")
	r.run(ctx, r.dir, "git", "clone", "--quiet", "origin.git", "clone")
	clone := r.path("clone")

	r.run(ctx, clone, "make", "release-root", "VERSION="+r.version)
	r.run(ctx, clone, "git", "push", "--quiet", "origin", "main", r.version)
	r.publish(ctx, clone, "")

	r.run(ctx, clone, "make", "release-modules", "VERSION="+r.version)
	push := []string{"push", "--quiet", "origin", "main"}
	for _, dir := range released[1:] {
		push = append(push, dir+"/"+r.version)
	}
	r.run(ctx, clone, "git", push...)
	for _, dir := range released[1:] {
		r.publish(ctx, clone, dir)
	}

	platform := "PLATFORMS=" + runtime.GOOS + "/" + runtime.GOARCH
	r.run(ctx, clone, "make", "dist", "sbom", "VERSION="+r.version, platform)
}

// install installs the programs, and runs them.
func (r *rehearsal) install(ctx context.Context) {
	for _, name := range []string{"kubectl-series", "eventsmigrate"} {
		r.run(ctx, r.dir, "go", "install", root+"/cmd/"+name+"@"+r.version)
		program := filepath.Join(r.path("gobin"), name)
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		r.run(ctx, r.dir, program, "-h")
	}
}

// use builds and runs a program that requires the released libraries.
func (r *rehearsal) use(ctx context.Context) {
	dir := r.path("outside")
	r.do(func() error {
		program, err := fs.Sub(outside, "testdata/outside")
		if err != nil {
			return err
		}
		return os.CopyFS(dir, program)
	})
	r.run(ctx, dir, "go", "mod", "init", "example.com/outside")
	r.run(ctx, dir, "go", "get", root+"@"+r.version, root+"/controllerruntime@"+r.version)
	r.run(ctx, dir, "go", "mod", "tidy")
	r.run(ctx, dir, "go", "run", ".")
	r.do(func() error {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			return err
		}
		return checkRequirements(text, r.version)
	})
}

// checkRequirements returns an error unless a go.mod requires the libraries at a version,
// and replaces nothing.
func checkRequirements(text []byte, version string) error {
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return err
	}
	required := map[string]string{}
	for _, r := range file.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	for _, dir := range released[:2] {
		if p := path.Join(root, dir); required[p] != version {
			return fmt.Errorf("go.mod requires %s %q, want %s", p, required[p], version)
		}
	}
	if len(file.Replace) > 0 {
		return fmt.Errorf("go.mod replaces %s", file.Replace[0].Old.Path)
	}
	return nil
}

// publish adds a tagged module to the proxy, as a proxy would after the push of the tag.
func (r *rehearsal) publish(ctx context.Context, clone, dir string) {
	tag := path.Join(dir, r.version)
	m := module.Version{Path: path.Join(root, dir), Version: r.version}
	r.do(func() error {
		gomod, err := r.command(ctx, clone, "git", "show", tag+":"+path.Join(dir, "go.mod")).Output()
		if err != nil {
			return fmt.Errorf("go.mod of %v: %w", m, err)
		}
		date, err := r.command(ctx, clone, "git", "log", "-1", "--format=%ct", tag+"^{commit}").Output()
		if err != nil {
			return fmt.Errorf("date of %v: %w", m, err)
		}
		seconds, err := strconv.ParseInt(strings.TrimSpace(string(date)), 10, 64)
		if err != nil {
			return err
		}
		info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Unix(seconds, 0).UTC()})
		if err != nil {
			return err
		}
		versions := filepath.Join(r.path("proxy"), filepath.FromSlash(m.Path), "@v") // without capitals
		if err := os.MkdirAll(versions, 0o755); err != nil {
			return err
		}
		archive, err := os.Create(filepath.Join(versions, r.version+".zip"))
		if err != nil {
			return err
		}
		fmt.Println("release: publish", m)
		return errors.Join(
			zip.CreateFromVCS(archive, m, clone, tag, dir), archive.Close(),
			os.WriteFile(filepath.Join(versions, "list"), []byte(r.version+"\n"), 0o644),
			os.WriteFile(filepath.Join(versions, r.version+".mod"), gomod, 0o644),
			os.WriteFile(filepath.Join(versions, r.version+".info"), info, 0o644),
		)
	})
}

// do does a step.
func (r *rehearsal) do(step func() error) {
	if r.err == nil {
		r.err = step()
	}
}

// run runs a command as a step, and shows it with its output.
func (r *rehearsal) run(ctx context.Context, dir, name string, args ...string) {
	r.do(func() error {
		fmt.Println("+", name, strings.Join(args, " "))
		cmd := r.command(ctx, dir, name, args...)
		cmd.Stdout = os.Stdout
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
		}
		return nil
	})
}

func (r *rehearsal) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = r.env
	cmd.Stderr = os.Stderr
	return cmd
}

func (r *rehearsal) path(name string) string { return filepath.Join(r.dir, name) }

// fileURL returns the URL of a directory.
func fileURL(dir string) string {
	dir = filepath.ToSlash(dir)
	if !strings.HasPrefix(dir, "/") { // C:/
		dir = "/" + dir
	}
	return "file://" + dir
}
