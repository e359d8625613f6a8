package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// program is a program on the module proxy.
type program struct {
	Module, Version string
	Packages        []string // to move
	// Staging is the published version of modules that go.mod replaces by directories.
	Staging string
	Main    string   // the package of the program
	Tools   []string // packages of programs that the story needs
	// Finish is what a person adds so that the program shuts down its broadcasters.
	Finish []edit
	// Story starts the program, and returns when the story ends.
	Story    func(context.Context, *cluster) error
	Duration time.Duration // of the story
	Users    []controlplane.User
	// FixedPort is true if the program listens on a fixed port, so only one can run.
	FixedPort bool
}

// edit inserts a text into a file.
type edit struct{ File, Before, Text string }

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// name returns the last element of the module path, without its major version.
func (p program) name() string {
	return path.Base(majorVersion.ReplaceAllString(p.Module, ""))
}

const kubernetesModule, kubernetesVersion, kubernetesStaging = "k8s.io/kubernetes", "v1.36.3", "v0.36.3"

var programs = []program{
	{
		Module: kubernetesModule, Version: kubernetesVersion, Staging: kubernetesStaging,
		Packages: []string{"./pkg/controller/...", "./cmd/kube-controller-manager/..."},
		Main:     "./cmd/kube-controller-manager",
		Users:    []controlplane.User{{Name: manager, Token: "kube-controller-manager-token"}},
		Duration: 20 * time.Minute, Story: tellKubernetes,
	},
	{
		Module: "github.com/kubeflow/mpi-operator", Version: "v0.8.2",
		Packages: []string{"./cmd/...", "./pkg/..."},
		Main:     "./cmd/mpi-operator",
		Duration: 90 * time.Second, FixedPort: true, Story: tellMPIOperator, Finish: finishMPIOperator,
	},
	{
		Module: "github.com/bitnami-labs/sealed-secrets", Version: "v0.29.0",
		Packages: []string{"./cmd/...", "./pkg/..."},
		Main:     "./cmd/controller", Tools: []string{"./cmd/kubeseal"},
		Duration: 90 * time.Second, Story: tellSealedSecrets, Finish: finishSealedSecrets,
	},
}

// recorderModule is the module of this repository.
const recorderModule = "github.com/eventseries/eventseries"

// mover moves a program. The copy is a Git repository with the tags stock and moved. Both
// versions have the same path, so they share the build cache.
type mover struct {
	program
	root, work string
	duration   time.Duration // of the story
	results    *moved
}

func (m *mover) dir() string { return filepath.Join(m.work, m.name()) }

// command returns a command in the copy.
func (m *mover) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "10", name}, args...)...)
	cmd.Dir = m.dir()
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off")
	return cmd
}

// output runs a command and returns what it prints to stdout.
func (m *mover) output(ctx context.Context, name string, args ...string) (string, error) {
	return outputOf(m.command(ctx, name, args...))
}

// outputOf runs a command and returns what it prints to stdout.
func outputOf(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[3:], " "), err, tail(stderr.String()))
	}
	return string(out), nil
}

func (m *mover) git(ctx context.Context, args ...string) (string, error) {
	return m.output(ctx, "git", append([]string{"-c", "user.name=casestudy", "-c", "user.email=casestudy@localhost"}, args...)...)
}

// move copies the program and moves it.
func (m *mover) move(ctx context.Context) error {
	if err := m.copy(ctx); err != nil {
		return err
	}
	tool := filepath.Join(m.work, "eventsmigrate")
	build := exec.CommandContext(ctx, "go", "build", "-o", tool, ".")
	build.Dir = filepath.Join(m.root, "cmd", "eventsmigrate")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build eventsmigrate: %w: %s", err, out)
	}
	log.Printf("%s: compile the dependencies", m.Module)
	if _, err := m.output(ctx, "go", append([]string{"list", "-export", "-test", "-f", ""}, m.Packages...)...); err != nil {
		return err
	}
	log.Printf("%s: eventsmigrate", m.Module)
	r := m.results
	r.Date = time.Now().UTC().Format(time.DateOnly)
	report, err := m.migrate(ctx, tool, &r.Seconds, &r.CPUSeconds)
	if err != nil {
		return err
	}
	if err := r.parse(report); err != nil {
		return err
	}
	if err := m.commit(ctx, "moved"); err != nil {
		return err
	}
	if _, err = m.migrate(ctx, tool, &r.SecondSeconds, new(float64)); err != nil {
		return err
	}
	status, err := m.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	r.SecondChanged = len(strings.Fields(status)) / 2
	return m.compare(ctx)
}

// migrate runs eventsmigrate, and returns its report. It measures the wall time and the
// CPU time.
func (m *mover) migrate(ctx context.Context, tool string, wall, cpu *float64) (report string, err error) {
	cmd := m.command(ctx, tool, append([]string{"-fix", "-to=eventseries", "-related"}, m.Packages...)...)
	began := time.Now()
	report, err = outputOf(cmd)
	if err != nil {
		return "", err
	}
	*wall = time.Since(began).Seconds()
	*cpu, _ = usage(cmd.ProcessState)
	return report, nil
}

// copy copies the program from the module cache, tags it as stock, and requires the
// recorder.
func (m *mover) copy(ctx context.Context) error {
	if err := os.RemoveAll(m.dir()); err != nil {
		return err
	}
	if err := os.MkdirAll(m.dir(), 0o755); err != nil {
		return err
	}
	source, err := m.download(ctx, m.Module+"@"+m.Version)
	if err != nil {
		return err
	}
	if err := os.CopyFS(m.dir(), os.DirFS(source)); err != nil {
		return err
	}
	for _, name := range []string{"go.work", "go.work.sum", "vendor"} {
		if err := os.RemoveAll(filepath.Join(m.dir(), name)); err != nil {
			return err
		}
	}
	if err := m.replaceModules(ctx); err != nil {
		return err
	}
	if _, err := m.git(ctx, "init", "-q"); err != nil {
		return err
	}
	if err := m.commit(ctx, "stock"); err != nil {
		return err
	}
	_, err = m.output(ctx, "go", "mod", "edit", "-require="+recorderModule+"@v0.0.0", "-replace="+recorderModule+"="+m.root)
	return err
}

// download returns the directory of a module in the module cache.
func (m *mover) download(ctx context.Context, module string) (string, error) {
	out, err := m.output(ctx, "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var source struct{ Dir string }
	err = json.Unmarshal([]byte(out), &source)
	return source.Dir, err
}

// replaceModules uses published modules in place of directories of the program's own
// repository, which are not in the copy.
func (m *mover) replaceModules(ctx context.Context) error {
	out, err := m.output(ctx, "go", "mod", "edit", "-json")
	if err != nil {
		return err
	}
	var file struct {
		Replace []struct {
			Old, New struct{ Path, Version string }
		}
	}
	if err := json.Unmarshal([]byte(out), &file); err != nil {
		return err
	}
	edit := []string{"mod", "edit", "-module=" + m.Module} // at least one flag
	for _, r := range file.Replace {
		switch {
		case !strings.HasPrefix(r.New.Path, "."):
		case m.Staging != "":
			edit = append(edit, "-replace="+r.Old.Path+"="+r.Old.Path+"@"+m.Staging)
		default:
			edit = append(edit, "-dropreplace="+r.Old.Path)
		}
	}
	_, err = m.output(ctx, "go", edit...)
	return err
}

func (m *mover) commit(ctx context.Context, tag string) error {
	if _, err := m.git(ctx, "add", "-A", "-f"); err != nil {
		return err
	}
	if _, err := m.git(ctx, "commit", "-q", "--allow-empty", "-m", tag); err != nil {
		return err
	}
	_, err := m.git(ctx, "tag", "-f", tag)
	return err
}

// compare counts what changed.
func (m *mover) compare(ctx context.Context) error {
	out, err := m.git(ctx, "diff", "--numstat", "stock", "moved", "--", ".", ":!go.mod", ":!go.sum")
	if err != nil {
		return err
	}
	r := m.results
	r.Files, r.Inserted, r.Deleted = 0, 0, 0
	changed := map[string]bool{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		inserted, _ := strconv.Atoi(fields[0]) // "-" in binary files
		deleted, _ := strconv.Atoi(fields[1])
		r.Files++
		r.Inserted += inserted
		r.Deleted += deleted
		if strings.HasSuffix(fields[2], ".go") {
			changed["./"+path.Dir(fields[2])] = true
		}
	}
	r.Changed = slices.Sorted(maps.Keys(changed))
	return nil
}

var (
	ruleLine  = regexp.MustCompile(`^(\w+)\s+(\d+)\s+(\d+)\s+(\d+)$`)
	callsLine = regexp.MustCompile(`^(\d+) of (\d+) calls `)
	placeLine = regexp.MustCompile(`^  (\S+?:\d+): (\w+): (.*)$`)
)

// parse reads the report of eventsmigrate.
func (r *moved) parse(report string) error {
	r.Rules, r.Left, r.Decide = nil, nil, nil
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	var places *[]place
	for line := range strings.Lines(report) {
		line = strings.TrimRight(line, "\n")
		switch line {
		case "Left as it is:":
			places = &r.Left
		case "To decide:":
			places = &r.Decide
		default:
			if f := ruleLine.FindStringSubmatch(line); f != nil {
				r.Rules = append(r.Rules, rule{f[1], number(f[2]), number(f[3]), number(f[4])})
			} else if f := callsLine.FindStringSubmatch(line); f != nil {
				r.CallsMoved, r.CallsLeft = number(f[1]), number(f[2])-number(f[1])
			} else if f := placeLine.FindStringSubmatch(line); f != nil && places != nil {
				*places = append(*places, place{f[1], f[2], f[3]})
			}
		}
	}
	if len(r.Rules) == 0 || r.CallsMoved+r.CallsLeft == 0 {
		return fmt.Errorf("no table in the report of eventsmigrate: %s", tail(report))
	}
	return nil
}

// compile type-checks the changed packages and all that import one of them, with their
// tests.
func (m *mover) compile(ctx context.Context) error {
	if err := m.checkout(ctx, "moved"); err != nil {
		return err
	}
	out, err := m.output(ctx, "go", "list", "-e", "-f", `{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`, "./...")
	if err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, p := range m.results.Changed {
		changed[path.Join(m.Module, p)] = true
	}
	var check []string
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); slices.ContainsFunc(fields, func(p string) bool { return changed[p] }) {
			check = append(check, fields[0])
		}
	}
	out, err = m.output(ctx, "go", append([]string{"list", "-e", "-export", "-test", "-f", `{{if .Error}}{{.ImportPath}}{{end}}`}, check...)...)
	if err != nil {
		return err
	}
	m.results.Compiled, m.results.Broken = len(check), nil
	for line := range strings.Lines(out) {
		pkg, _, _ := strings.Cut(strings.TrimSpace(line), " [") // with tests: "path [path.test]"
		if pkg != "" && !slices.Contains(m.results.Broken, pkg) {
			m.results.Broken = append(m.results.Broken, pkg)
		}
	}
	return nil
}

// checkout switches the copy to a version.
func (m *mover) checkout(ctx context.Context, tag string) error {
	_, err := m.git(ctx, "checkout", "-q", "-f", tag)
	return err
}

// finish does what eventsmigrate leaves to a person.
func (m *mover) finish(ctx context.Context) error {
	if err := m.checkout(ctx, "moved"); err != nil {
		return err
	}
	for _, e := range m.Finish {
		if err := m.replace(e.File, e.Before, e.Text+e.Before); err != nil {
			return err
		}
	}
	return m.commit(ctx, "finished")
}

// build compiles the versions of the program for the story.
func (m *mover) build(ctx context.Context) error {
	tags := []string{"stock", "moved"}
	if m.Finish != nil {
		if err := m.finish(ctx); err != nil {
			return err
		}
		tags = append(tags, "finished")
	}
	for _, tag := range tags {
		if err := m.checkout(ctx, tag); err != nil {
			return err
		}
		if _, err := m.output(ctx, "go", "build", "-o", m.binary(tag), m.Main); err != nil {
			return err
		}
	}
	for _, tool := range m.Tools {
		if _, err := m.output(ctx, "go", "build", "-o", m.work+"/", tool); err != nil {
			return err
		}
	}
	return nil
}

// binary returns the path of a version of the program for the story.
func (m *mover) binary(tag string) string { return filepath.Join(m.work, path.Base(m.Main)+"-"+tag) }

// test runs the unit tests of the changed packages, before and after.
func (m *mover) test(ctx context.Context) (err error) {
	if m.results.Changed == nil {
		return errors.New("run the step move first")
	}
	if m.results.After, err = m.runTests(ctx, "moved"); err != nil {
		return err
	}
	m.results.Before, err = m.runTests(ctx, "stock")
	return err
}

func (m *mover) runTests(ctx context.Context, tag string) (tests, error) {
	if err := m.checkout(ctx, tag); err != nil {
		return tests{}, err
	}
	log.Printf("%s: unit tests, %s", m.Module, tag)
	units := slices.DeleteFunc(slices.Clone(m.results.Changed), func(p string) bool {
		return strings.HasPrefix(p, "./test/") // needs servers
	})
	result, err := m.goTest(ctx, "", units)
	if err != nil {
		return tests{}, err
	}
	// Tests that depend on the timing may fail on a busy machine. Repeat them alone.
	failed := result.Failed
	result.Failed = nil
	for _, name := range failed {
		pkg, test, _ := strings.Cut(name, " ")
		if test != "" {
			again, err := m.goTest(ctx, "^"+test+"$", []string{pkg})
			if err != nil {
				return tests{}, err
			}
			if len(again.Failed) == 0 {
				result.Passed++
				continue
			}
		}
		result.Failed = append(result.Failed, name)
	}
	return result, nil
}

// goTest runs tests and returns their results. It counts top-level tests.
func (m *mover) goTest(ctx context.Context, pattern string, packages []string) (tests, error) {
	// go vet would analyze all dependencies first, and the linker would write the data for
	// debuggers.
	args := []string{"test", "-count=1", "-p=2", "-timeout=20m", "-vet=off", "-ldflags=-s -w", "-json"}
	if pattern != "" {
		args = append(args, "-run="+pattern)
	}
	cmd := m.command(ctx, "go", append(args, packages...)...)
	output, err := os.Create(m.dir() + "-test.json") // to see the progress
	if err != nil {
		return tests{}, err
	}
	defer output.Close()
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = output, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return tests{}, err
	}
	out, err := os.ReadFile(output.Name())
	if err != nil {
		return tests{}, err
	}
	var result tests
	inPackage := map[string]bool{} // packages with a failed test
	for line := range bytes.Lines(out) {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(line, &event) != nil || strings.Contains(event.Test, "/") {
			continue
		}
		pkg := "." + strings.TrimPrefix(event.Package, m.Module)
		switch {
		case event.Test == "" && event.Action == "fail" && !inPackage[pkg]:
			result.Packages++
			result.Failed = append(result.Failed, pkg) // does not compile, or a panic
		case event.Test == "" && (event.Action == "pass" || event.Action == "fail"):
			result.Packages++
		case event.Test == "":
		case event.Action == "pass":
			result.Passed++
		case event.Action == "skip":
			result.Skipped++
		case event.Action == "fail":
			inPackage[pkg] = true
			result.Failed = append(result.Failed, pkg+" "+event.Test)
		}
	}
	if result.Packages == 0 {
		return tests{}, fmt.Errorf("go test: no packages: %s", tail(stderr.String()))
	}
	slices.Sort(result.Failed)
	return result, nil
}

// tail returns the end of an output.
func tail(s string) string {
	const limit = 2000
	s = strings.TrimSpace(s)
	return s[max(0, len(s)-limit):]
}
