package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"time"
)

// moduleDir is the directory of the program's module, relative to the root of the
// repository.
const moduleDir = "test/controlplane"

// interruptGrace is how long the go command may take to exit after an interrupt.
const interruptGrace = 10 * time.Second

// Build compiles the programs in some directories of the repository into bin, and returns
// the path of the first one. Without directories it compiles the control plane. The working
// directory must be inside a clone of the repository. All programs have the versions of the
// workspace of the control plane, so that what they share compiles once.
//
// The first build takes minutes: Build writes its progress in lines, unless progress is
// nil. A build with little to do writes nothing.
//
// Several processes may call Build at the same time: one compiles, the others wait for it.
// On platforms without file locks, such as Windows, all of them compile. Cancelling ctx
// cancels the build.
func Build(ctx context.Context, progress io.Writer, dirs ...string) (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("controlplane: %w", err)
	}
	root, err := findRoot(wd)
	if err != nil {
		return "", err
	}
	if progress == nil {
		progress = io.Discard
	}
	if len(dirs) == 0 {
		dirs = []string{moduleDir}
	}
	return build(ctx, root, "go", progress, dirs)
}

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

// build is [Build] with a root of the repository and a go command.
func build(ctx context.Context, root, goCommand string, w io.Writer, dirs []string) (_ string, err error) {
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return "", fmt.Errorf("controlplane: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(bin, ".controlplane.lock"), func() {
		fmt.Fprintln(w, "controlplane: waiting for another process that compiles")
	})
	if err != nil {
		return "", fmt.Errorf("controlplane: lock: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	gomod, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(moduleDir), "go.mod"))
	if err != nil {
		return "", fmt.Errorf("controlplane: %w", err)
	}
	// An interrupted go command may leave temporary files behind. Keep them inside
	// the clone, and remove them.
	temporary, err := os.MkdirTemp(bin, "tmp-")
	if err != nil {
		return "", fmt.Errorf("controlplane: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()

	// Without the symbol table a program is a third smaller. Without the version control
	// state a new commit does not link it again. Only the release builds of Kubernetes set
	// its version, and the server would report v0.0.0.
	args := []string{"build", "-v", "-buildvcs=false", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}
	if m := kubernetesRequirement.FindSubmatch(gomod); m != nil {
		args[3] += " -X k8s.io/component-base/version.gitVersion=" + string(m[1])
	}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, goCommand, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTMPDIR="+temporary, "GOWORK="+filepath.Join(root, filepath.FromSlash(moduleDir), "go.work"))
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = interruptGrace
	report := &progress{w: w, dir: dirs[0], now: time.Now, start: time.Now()}
	cmd.Stderr = report
	err = cmd.Run()
	if failure := report.end(err); failure != nil {
		return "", fmt.Errorf("controlplane: go build in %s: %w", root, failure)
	}
	return filepath.Join(bin, path.Base(dirs[0])+exeSuffix), nil
}

var kubernetesRequirement = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v\S+)`)
