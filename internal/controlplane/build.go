package controlplane

import (
	"bufio"
	"bytes"
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

// Build compiles the control plane into bin/controlplane and returns the path of
// the program. It compiles other programs into bin, too: those in the given directories
// of the repository. The working directory must be inside a clone of the repository.
//
// The first build takes minutes, and Build reports its progress: on a terminal it
// redraws one line, elsewhere it writes a line every ten seconds. A build with little
// to do writes nothing. Build discards the report if progress is nil.
//
// Several processes may call Build at the same time: one compiles, the others
// wait for it. On platforms without file locks, such as Windows, all of them
// compile. Cancelling ctx cancels the build.
func Build(ctx context.Context, progress io.Writer, others ...string) (string, error) {
	return BuildPrograms(ctx, progress, append([]string{moduleDir}, others...)...)
}

// BuildPrograms compiles the programs in some directories of the repository into bin,
// and returns the path of the first one. All programs have the versions of the
// workspace of the control plane, so that what they share compiles once. See [Build].
func BuildPrograms(ctx context.Context, progress io.Writer, dirs ...string) (string, error) {
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

// build implements [BuildPrograms] for a repository root and a go command.
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
	var packages []string
	for _, dir := range dirs {
		packages = append(packages, "./"+dir)
	}
	cmd := goTool(ctx, goCommand, root, append(buildArgs(bin, kubernetesVersion(gomod)), packages...)...)
	// An interrupted go command may leave temporary files behind. Keep them inside
	// the clone, and remove them.
	temporary, err := os.MkdirTemp(bin, "tmp-")
	if err != nil {
		return "", fmt.Errorf("controlplane: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	cmd.Env = append(cmd.Env, "GOTMPDIR="+temporary)
	p := newProgress(w, isTerminal(w), dirs[0])
	if err := runBuild(cmd, p, func(ctx context.Context) (int, error) {
		return countPackages(goTool(ctx, goCommand, root, append([]string{"list", "-deps"}, packages...)...))
	}); err != nil {
		return "", err
	}
	return filepath.Join(bin, path.Base(dirs[0])+exeSuffix), nil
}

// goTool returns a go command that runs in root, in the workspace of the control plane. It
// disables cgo, so that a build needs only Go.
func goTool(ctx context.Context, goCommand, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, goCommand, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+filepath.Join(root, filepath.FromSlash(moduleDir), "go.work"))
	cmd.Cancel = func() error { return interrupt(cmd.Process) }
	cmd.WaitDelay = interruptGrace
	return cmd
}

// buildArgs returns the arguments of the go command, without the packages. Without the
// symbol table a program is a third smaller. Without the version control state a new
// commit does not link it again.
func buildArgs(bin, kubernetesVersion string) []string {
	ldflags := "-s -w"
	if kubernetesVersion != "" {
		ldflags += " -X k8s.io/component-base/version.gitVersion=" + kubernetesVersion
	}
	return []string{"build", "-v", "-buildvcs=false", "-ldflags=" + ldflags, "-o", bin + string(filepath.Separator)}
}

var kubernetesRequirement = regexp.MustCompile(`(?m)^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v\S+)`)

// kubernetesVersion returns the version of Kubernetes that a go.mod file requires,
// or "". The build sets it, because only the release builds of Kubernetes do, and
// the server would report v0.0.0.
func kubernetesVersion(gomod []byte) string {
	if m := kubernetesRequirement.FindSubmatch(gomod); m != nil {
		return string(m[1])
	}
	return ""
}

// runBuild runs "go build -v" and passes its output to p. When the first package
// is compiled, it calls count concurrently with the build to learn the number of
// packages.
func runBuild(cmd *exec.Cmd, p *progress, count func(context.Context) (int, error)) error {
	output, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("controlplane: go build: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("controlplane: go build: %w", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	counted := make(chan struct{})
	close(counted)
	ticked := make(chan struct{})
	go func() {
		defer close(ticked)
		p.run(ctx)
	}()
	messages := &tail{}
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		line := scanner.Text()
		if !p.line(line) {
			fmt.Fprintln(messages, line)
			continue
		}
		if count != nil && p.compiling() {
			counted = make(chan struct{})
			go func(count func(context.Context) (int, error)) {
				defer close(counted)
				if n, err := count(ctx); err == nil { // the report works without a total
					p.setTotal(n)
				}
			}(count)
			count = nil
		}
	}
	err = cmd.Wait()
	cancel()
	<-ticked
	<-counted
	p.end(err == nil)
	if err != nil {
		return fmt.Errorf("controlplane: go build in %s: %w\n%s", cmd.Dir, err, messages)
	}
	return nil
}

// countPackages runs "go list" and returns how many packages it lists.
func countPackages(cmd *exec.Cmd) (int, error) {
	out, err := cmd.Output()
	return bytes.Count(out, []byte("\n")), err
}
