package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"os/exec"

	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/analyzers"
	_ "github.com/eventseries/eventseries/cmd/eventsmigrate/golangci" // registers the plugin
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

var update = flag.Bool("update", false, "write the golden files")

// program is what a golden test moves: the packages below a directory of a module.
type program struct {
	module string // its path
	name   string // the directory in the module
	target move.Target
	opts   move.Options

	dir string // of the reported names
	r   *driver.Result
	out string // the report
}

// run moves the program. Its packages are among those that are loaded.
func (p *program) run(t *testing.T, loaded *driver.Packages, module, name string, f flags) {
	t.Helper()
	p.opts.Target = p.target
	r, err := loaded.Move(p.opts, p.module+"/"+name)
	require.NoError(t, err)
	p.r, p.dir = r, module
	if name != string(p.target) {
		p.dir = filepath.Join(module, name)
		r.Manifests = nil // of all programs
	}
	within := func(d driver.Diagnostic) bool { return strings.HasPrefix(d.Pos.Filename, filepath.Join(module, name)) }
	r.Missed = slices.DeleteFunc(slices.Clone(r.Missed), func(d driver.Diagnostic) bool { return !within(d) })
	var b bytes.Buffer
	report(&b, p.dir, r, f)
	p.out = b.String()
}

// golden returns the name of the golden file of a changed one.
func (p *program) golden(name string) string {
	if p.name == string(p.target) {
		return name + ".golden"
	}
	return name + "." + string(p.target)
}

// The input of each golden file is the file beside it. The packages of a module load once, and
// once more with their golden files: a second move changes nothing, and what a person must decide
// is in both reports. Each program is moved alone, since its recorders depend on its managers.
func TestGolden(t *testing.T) {
	t.Parallel()
	actions, err := readActions(filepath.Join("testdata", "actions.yaml"))
	require.NoError(t, err)
	var all []*program
	for _, target := range move.Targets {
		all = append(all, &program{module: "example.com/testdata", name: string(target), target: target, opts: move.Options{Related: true, Actions: actions}})
	}
	for dir, module := range map[string]string{"testdata": "example.com/testdata", "testdata/old": "example.com/old"} {
		reports, err := filepath.Glob(filepath.Join(dir, "programs", "*", "*.report"))
		require.NoError(t, err)
		for _, name := range reports {
			rel, err := filepath.Rel(dir, filepath.Dir(name))
			require.NoError(t, err)
			all = append(all, &program{module: module, name: filepath.ToSlash(rel), target: move.Target(strings.TrimSuffix(filepath.Base(name), ".report")), opts: move.Options{Related: true}})
		}
	}
	for dir, module := range map[string]string{"testdata": "example.com/testdata", "testdata/old": "example.com/old"} {
		programs := slices.DeleteFunc(slices.Clone(all), func(p *program) bool { return p.module != module })
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.Abs(dir)
			require.NoError(t, err)
			testGolden(t, dir, programs)
		})
	}
}

func testGolden(t *testing.T, dir string, programs []*program) {
	t.Helper()
	var names []string
	for _, p := range programs {
		names = append(names, "./"+p.name+"/...")
	}
	loaded, err := driver.Load(driver.Config{Dir: dir, Patterns: names})
	require.NoError(t, err)
	copied := copyModule(t, dir)
	names = nil
	for _, p := range programs {
		p.run(t, loaded, dir, p.name, flags{actions: filepath.Join(dir, "actions.yaml"), fix: true, verbose: true})
		golden(t, filepath.Join(p.dir, string(p.target)+".report"), []byte(p.out))
		for name, src := range p.r.Changed {
			golden(t, p.golden(name), src)
		}
		assert.Len(t, p.r.Changed, goldenFiles(t, filepath.Join(dir, p.name), filepath.Ext(p.golden(""))), "golden files without an output: %s", p.name)
		names = append(names, p.second())
		copyProgram(t, dir, copied, p)
	}
	patterns := make([]string, len(names))
	for i, name := range names {
		patterns[i] = "./" + name + "/..."
	}
	loaded, err = driver.Load(driver.Config{Dir: copied, Patterns: patterns})
	require.NoError(t, err)
	for i, p := range programs {
		first, dir := *p, p.dir
		p.run(t, loaded, copied, names[i], flags{fix: true, verbose: true})
		assert.Empty(t, slices.Sorted(maps.Keys(p.r.Changed)), "a second run changes files")
		assert.ElementsMatch(t, findings(p.dir, p.r), findings(dir, first.r), p.name)
		assert.Equal(t, first.r.Plan.Stock, p.r.Plan.Stock, p.out)
		assert.Equal(t, first.r.Plan.Others, p.r.Plan.Others, p.out)
	}
}

// second returns the directory of the moved program in the copy, which has one for each target.
func (p *program) second() string {
	if p.name == string(p.target) {
		return p.name
	}
	return p.name + "-" + string(p.target)
}

// copyProgram copies a moved program.
func copyProgram(t *testing.T, dir, copied string, p *program) {
	t.Helper()
	for _, suffix := range []string{"", "-outside"} {
		from := filepath.Join(dir, p.name+suffix)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		require.NoError(t, fs.WalkDir(os.DirFS(from), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name := filepath.Join(from, path)
			src, ok := p.r.Changed[name]
			if !ok {
				if src, err = os.ReadFile(name); err != nil {
					return err
				}
			}
			to := filepath.Join(copied, p.second()+suffix, path)
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			return os.WriteFile(to, bytes.ReplaceAll(src, []byte(p.module+"/"+p.name), []byte(p.module+"/"+p.second())), 0o600)
		}))
	}
}

// findings returns what the linter reports, the actions that nobody has named, and the
// managers that may not emit series.
func findings(dir string, r *driver.Result) (list []string) {
	for _, d := range r.Lint {
		list = append(list, relative(dir, d.Pos.Filename)+": "+d.Text)
	}
	for _, i := range r.Plan.Items {
		if (i.Rule == "action" || i.Rule == "manager") && i.Status == move.Decide {
			list = append(list, i.Text)
		}
	}
	return list
}

// A broadcaster of compat/record writes to the core group, so its program needs no rule for
// the other one.
func TestPermissions(t *testing.T) {
	t.Parallel()
	loaded, err := driver.Load(driver.Config{Dir: "testdata", Patterns: []string{"./permissions/..."}})
	require.NoError(t, err)
	for program, want := range map[string]int{"core": 0, "library": 0, "coresink": 0, "tests": 0, "moved": 1} {
		r, err := loaded.Move(move.Options{Target: move.EventSeries}, "example.com/testdata/permissions/"+program)
		require.NoError(t, err)
		got := 0
		for _, i := range r.Plan.Items {
			if i.Rule == "RBAC" && strings.Contains(i.Text, "the group events.k8s.io") {
				got++
			}
		}
		assert.Equal(t, want, got, program)
		assert.Equal(t, want > 0, slices.ContainsFunc(r.Manifests, func(d driver.Diagnostic) bool { return strings.Contains(d.Text, "the group events.k8s.io") }), program)
	}
}

// Files keep their line ends, their byte order mark, and a form that is not that of gofmt.
func TestForm(t *testing.T) {
	t.Parallel()
	dir := copyModule(t, "testdata", "eventseries/generated")
	name := filepath.Join(dir, "eventseries", "generated", "code.go")
	src, err := os.ReadFile(name)
	require.NoError(t, err)
	want, err := os.ReadFile(name + ".golden")
	require.NoError(t, err)
	form := "\ufeff" + strings.ReplaceAll(strings.Replace(string(src), "func ", "func  ", 1), "\n", "\r\n")
	require.NoError(t, os.WriteFile(name, []byte(form), 0o600))
	r, err := driver.Run(driver.Config{Dir: dir, Patterns: []string{"./..."}, Options: move.Options{Target: move.EventSeries}})
	require.NoError(t, err)
	got := string(r.Changed[name])
	assert.True(t, strings.HasPrefix(got, "\ufeff"), got)
	assert.Equal(t, strings.Count(got, "\n"), strings.Count(got, "\r\n"))
	assert.Contains(t, got, "func  ")
	formatted, err := format.Source([]byte(got))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(formatted))
}

// goldenFiles counts the files below a directory, and below that of packages outside of the
// patterns.
func goldenFiles(t *testing.T, dir, ext string) (n int) {
	t.Helper()
	for _, name := range []string{dir, dir + "-outside"} {
		require.NoError(t, filepath.WalkDir(name, func(path string, _ os.DirEntry, err error) error {
			if filepath.Ext(path) == ext {
				n++
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}))
	}
	return n
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, got, 0o600))
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), name)
}

// In a module with few dependencies, since this reads the source of all.
func TestAnalyzers(t *testing.T) {
	t.Parallel()
	either := *analyzers.Lint
	either.Run = func(p *analysis.Pass) (any, error) {
		if strings.Contains(p.Pkg.Path(), "/legacy") {
			return analyzers.Legacy.Run(p)
		}
		return analyzers.Lint.Run(p)
	}
	dir, err := filepath.Abs(filepath.Join("testdata", "vet"))
	require.NoError(t, err)
	analysistest.RunWithSuggestedFixes(t, dir, &either, "./lint/...", "./legacy/...")
}

func TestBadInput(t *testing.T) {
	module := copyModule(t, "testdata", "order/generated")
	t.Chdir("testdata")
	dir := t.TempDir()
	invalid, lower, broken := filepath.Join(dir, "invalid"), filepath.Join(dir, "lower"), filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(invalid, []byte("- a list\n"), 0o600))
	require.NoError(t, os.WriteFile(lower, []byte("Created: create\n"), 0o600))
	twice, documents := filepath.Join(dir, "twice"), filepath.Join(dir, "documents")
	require.NoError(t, os.WriteFile(twice, []byte("Created: Create\nCreated: Make\n"), 0o600))
	require.NoError(t, os.WriteFile(documents, []byte("Created: Create\n---\nMade: Make\n"), 0o600))
	require.NoError(t, os.Mkdir(broken, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "go.mod"), []byte("module example.com/broken\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(broken, "a.go"), []byte("package broken\n\nvar a int = \"\"\n"), 0o600))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-to=nowhere", "./..."}, "unknown -to=nowhere"},
		{[]string{"-to", "record"}, "no packages"},
		{[]string{"-nonsense", "./..."}, "-nonsense"},
		{[]string{"-fix", "-diff", "./..."}, "exclude each other"},
		{[]string{"-actions=/does/not/exist", "./..."}, "/does/not/exist"},
		{[]string{"-actions=" + invalid, "./..."}, "want lines such as"},
		{[]string{"-actions=" + lower, "./..."}, `the action "create" of the reason Created`},
		{[]string{"-actions=" + twice, "./..."}, `"Created" already defined`},
		{[]string{"-actions=" + documents, "./..."}, "want one document"},
		{[]string{"./...", "-fix"}, "-fix follows the packages"},
		{[]string{"-tags=a b", "./does/not/exist"}, "do not load"},
		{[]string{"./does/not/exist"}, "do not load"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitBadInput, run(c.args, &stdout, &stderr), "%v", c.args)
		assert.Contains(t, stderr.String(), c.want, "%v", c.args)
		assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), "one line: %s", stderr.String())
		assert.Empty(t, stdout.String())
	}
	t.Chdir(broken)
	var stdout, stderr bytes.Buffer
	assert.Equal(t, exitBadInput, run([]string{"./..."}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "a.go:3")

	// A program that does not compile did not compile without the requirements either.
	require.NoError(t, os.Remove(filepath.Join(module, "require.go")))
	require.NoError(t, os.WriteFile(filepath.Join(module, "order", "generated", "code_test.go"), []byte("package generated\n\nfunc init() { undefined(); missing() }\n"), 0o600))
	out, code := start(t, module, "go", "mod", "edit", "-droprequire=github.com/eventseries/eventseries")
	require.Zero(t, code, out)
	t.Chdir(module)
	stderr.Reset()
	assert.Equal(t, exitBadInput, run([]string{"./..."}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "code_test.go:3:15: undefined: undefined\n")
	assert.NotContains(t, stderr.String(), "what the result needs")

	// The module of an import is missing, as in a copy from the module cache.
	missing := filepath.Join(dir, "missing")
	require.NoError(t, os.Mkdir(missing, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(missing, "go.mod"),
		[]byte("module example.com/missing\n\ngo 1.26.0\n\nrequire example.com/api v1.0.0\n\nreplace example.com/api => ./api\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(missing, "a.go"), []byte("package missing\n\nimport _ \"example.com/api\"\n"), 0o600))
	t.Chdir(missing)
	stderr.Reset()
	assert.Equal(t, exitBadInput, run([]string{"./..."}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "replacement directory ./api does not exist")

	t.Chdir(t.TempDir())
	stderr.Reset()
	assert.Equal(t, exitBadInput, run([]string{"./..."}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "go.mod")
}

// Either all files change or none, and a link stays one.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	first, link, locked := filepath.Join(dir, "first"), filepath.Join(dir, "link"), filepath.Join(dir, "locked")
	require.NoError(t, os.WriteFile(first, []byte("a"), 0o640))
	require.NoError(t, os.Symlink("first", link))
	require.NoError(t, os.WriteFile(locked, []byte("a"), 0o400))
	assert.ErrorContains(t, write(map[string][]byte{first: []byte("b"), locked: []byte("b")}), "locked is read-only")
	src, err := os.ReadFile(first)
	require.NoError(t, err)
	assert.Equal(t, "a", string(src))
	require.NoError(t, write(map[string][]byte{link: []byte("b")}))
	src, err = os.ReadFile(first)
	require.NoError(t, err)
	assert.Equal(t, "b", string(src))
}

// What is behind a link out of the module stays.
func TestLinkOutOfTheModule(t *testing.T) {
	t.Parallel()
	dir, outside := copyModule(t, "testdata"), filepath.Join(t.TempDir(), "a.go")
	const src = "package linked\n\nimport (\n\tcorev1 \"k8s.io/api/core/v1\"\n\t\"k8s.io/client-go/tools/record\"\n)\n\n" +
		"func emit(r record.EventRecorder) { r.Event(&corev1.Pod{}, \"Normal\", \"Created\", \"a\") }\n"
	require.NoError(t, os.WriteFile(outside, []byte(src), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "linked"), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "linked", "a.go")))
	r, err := driver.Run(driver.Config{Dir: dir, Patterns: []string{"./linked"}, Options: move.Options{Target: move.EventSeries}})
	require.NoError(t, err)
	assert.Empty(t, r.Changed)
	var b bytes.Buffer
	report(&b, dir, r, flags{})
	assert.Contains(t, b.String(), "the file is a link out of the module")
}

// The worst finding comes first, and generated packages have a line each.
func TestReportOrder(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs(filepath.Join("testdata", "order"))
	require.NoError(t, err)
	r, err := driver.Run(driver.Config{Dir: dir, Patterns: []string{"./..."}, Options: move.Options{Target: move.EventSeries}})
	require.NoError(t, err)
	r.Manifests = nil // of all programs
	var b bytes.Buffer
	report(&b, dir, r, flags{})
	golden(t, filepath.Join(dir, "report.golden"), b.Bytes())
}

// command builds the command once.
var command = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "eventsmigrate")
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "eventsmigrate")
	out, err := exec.Command("go", "build", "-o", name, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return name, nil
})

// The tests run the go command hundreds of times, each for less than a second, of which the
// collection of garbage would take a third.
func TestMain(m *testing.M) {
	_ = os.Setenv("GOGC", "off")
	_ = os.Setenv("GOMEMLIMIT", "1GiB")
	code := m.Run()
	if name, err := command(); err == nil {
		_ = os.RemoveAll(filepath.Dir(name))
	}
	os.Exit(code)
}

// start runs a program in a directory, and returns its output and exit code.
func start(t *testing.T, dir, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// copyModule returns a copy of a module with some of its packages.
func copyModule(t *testing.T, module string, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	replaced := regexp.MustCompile(`=> (\.\S*)`)
	for _, name := range []string{"go.mod", "go.sum", "require.go"} {
		src, err := os.ReadFile(filepath.Join(module, name))
		require.NoError(t, err)
		src = replaced.ReplaceAllFunc(src, func(r []byte) []byte {
			target, err := filepath.Abs(filepath.Join(module, string(r[len("=> "):])))
			require.NoError(t, err)
			return []byte("=> " + strconv.Quote(target)) // it can contain spaces
		})
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), src, 0o600))
	}
	for _, pkg := range packages {
		if _, err := os.Stat(filepath.Join(module, pkg)); err == nil {
			require.NoError(t, os.CopyFS(filepath.Join(dir, pkg), os.DirFS(filepath.Join(module, pkg))))
		}
	}
	return dir
}

// copyMoved returns a copy of a module with the changed files.
func copyMoved(t *testing.T, module string, r *driver.Result, packages ...string) string {
	t.Helper()
	dir := copyModule(t, module, packages...)
	for name, src := range r.Changed {
		require.NoError(t, os.WriteFile(filepath.Join(dir, relative(module, name)), src, 0o600))
	}
	return dir
}

func TestFix(t *testing.T) {
	t.Parallel()
	name, err := command()
	require.NoError(t, err)
	dir := copyModule(t, "testdata", "eventseries/variants", "eventseries/related")
	file := filepath.Join(dir, "eventseries", "related", "related.go")
	require.NoError(t, os.Chmod(file, 0o640))

	out, code := start(t, dir, name, "./...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "-related sets what messages name: job")
	out, code = start(t, dir, name, "-diff", "-related", "./...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "+++ b/eventseries/related/related.go\n")
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(src), "eventseries/events", "without -fix")

	out, code = start(t, dir, name, "-fix", "-related", "./...")
	assert.Equal(t, exitOK, code, out)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	assertMoved(t, dir, name, "-related", "./...")
}

// The command adds the module that the result imports, in the version that go.mod replaces.
func TestFixAddsModule(t *testing.T) {
	t.Parallel()
	name, err := command()
	require.NoError(t, err)
	dir := copyModule(t, "testdata", "programs/manager")
	for file, line := range map[string]string{"go.mod": "\tgithub.com/eventseries/eventseries/controllerruntime v0.0.0-00010101000000-000000000000\n", "require.go": "\t_ \"github.com/eventseries/eventseries/controllerruntime\"\n"} {
		src, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Contains(t, string(src), line)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), bytes.Replace(src, []byte(line), nil, 1), 0o600))
	}
	out, code := start(t, dir, name, "-diff", "./programs/...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "+\tgithub.com/eventseries/eventseries/controllerruntime v0.0.0\n")
	out, code = start(t, dir, name, "-fix", "./programs/...")
	assert.Equal(t, exitOK, code, out)
	assertMoved(t, dir, name, "./programs/...")

	// Only the user knows which module of a workspace needs it.
	dir = copyModule(t, "testdata", "programs/manager")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.work"), []byte("go 1.26.0\n\nuse .\n"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "require.go")))
	out, code = start(t, dir, "go", "mod", "edit", "-droprequire=github.com/eventseries/eventseries/controllerruntime")
	require.Zero(t, code, out)
	out, code = start(t, dir, name, "-diff", "./programs/...")
	assert.Equal(t, exitBadInput, code, out)
	assert.Contains(t, out, "run go get github.com/eventseries/eventseries/controllerruntime@v0.0.0: ")
}

// GOFLAGS=-mod=mod, which programs with a vendor directory need, lets the go command change
// go.mod when it loads a package. Only -fix may do that.
func TestGoModStays(t *testing.T) {
	name, err := command()
	require.NoError(t, err)
	dir := copyModule(t, "testdata", "programs/structured")
	require.NoError(t, os.Remove(filepath.Join(dir, "require.go")))
	t.Setenv("GOFLAGS", "-mod=mod")
	out, code := start(t, dir, "go", "mod", "edit", "-droprequire=github.com/eventseries/eventseries/controllerruntime", "-droprequire=github.com/eventseries/eventseries")
	require.Zero(t, code, out)
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	out, code = start(t, dir, name, "-to=record", "./...")
	assert.NotEqual(t, exitBadInput, code, out)
	after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after), "%s", after)
}

// If nothing moves, go.mod stays, although the result could have needed a module.
func TestFixOfNothing(t *testing.T) {
	t.Parallel()
	name, err := command()
	require.NoError(t, err)
	dir := copyModule(t, "testdata", "order/generated")
	require.NoError(t, os.Remove(filepath.Join(dir, "require.go")))
	out, code := start(t, dir, "go", "mod", "edit", "-droprequire=github.com/eventseries/eventseries")
	require.Zero(t, code, out)
	before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	out, code = start(t, dir, name, "-fix", "./...")
	assert.NotEqual(t, exitBadInput, code, out)
	assert.Contains(t, out, "places in this package: the file is generated")
	after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

// assertMoved asserts that a moved module has no errors, and that a second run of the tool changes
// nothing.
func assertMoved(t *testing.T, dir string, tool ...string) {
	t.Helper()
	_, err := driver.Load(driver.Config{Dir: dir, Patterns: []string{"./..."}})
	require.NoError(t, err)
	out, code := start(t, dir, tool[0], append([]string{"-diff"}, tool[1:]...)...)
	assert.Zero(t, code, out)
	assert.Empty(t, out)
}

// Packages that get a type that moves through another package compile after the move.
func TestFixIndirect(t *testing.T) {
	t.Parallel()
	name, err := command()
	require.NoError(t, err)
	const imports = "package indirect\n\nimport (\n\t\"k8s.io/client-go/tools/record\"\n\n\t\"example.com/testdata/eventseries-outside/between\"\n)\n\n"
	for _, c := range []struct{ target, extra, want string }{
		{"eventseries", imports + "func keep(record.EventRecorder) {}\n\nfunc init() { keep(between.New().Recorder) }\n", "4 of 4 calls"},
		// The plan does not understand this, but the type-check does.
		{"eventseries", imports + "type same struct{ Recorder record.EventRecorder }\n\nvar _ = same(*between.New())\n", "does not compile: cannot convert"},
	} {
		dir := copyModule(t, "testdata", "eventseries/options", "eventseries-outside/between", "eventseries-outside/indirect", "eventseries-outside/farther", "eventseries-outside/inner")
		if c.extra != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "eventseries-outside", "indirect", "extra.go"), []byte(c.extra), 0o600))
		}
		out, code := start(t, dir, name, "-fix", "-to="+c.target, "./eventseries/...")
		assert.Equal(t, exitOK, code, out)
		assert.Contains(t, out, c.want)
		assertMoved(t, dir, name, "-to="+c.target, "./eventseries/...")
	}
}

// A module with few dependencies, since go vet runs its tool on the source of all.
func TestVetTool(t *testing.T) {
	t.Parallel()
	name, err := command()
	require.NoError(t, err)
	out, code := start(t, filepath.Join("testdata", "vet"), "go", "vet", "-vettool="+name, ".")
	assert.Equal(t, 1, code, out)
	assert.Contains(t, out, "vet.go:13:2: Event of the legacy recorder")
	assert.Equal(t, 1, strings.Count(out, "the regarding object is cluster-scoped"), "by a fact: %s", out)
}

func TestPlugin(t *testing.T) {
	create, err := register.GetPlugin("eventsmigrate")
	require.NoError(t, err)
	for settings, want := range map[string]int{`{}`: 2, `{"legacy": false}`: 1} {
		var conf any
		require.NoError(t, json.Unmarshal([]byte(settings), &conf))
		p, err := create(conf)
		require.NoError(t, err)
		list, err := p.BuildAnalyzers()
		require.NoError(t, err)
		assert.Len(t, list, want, settings)
		assert.Equal(t, register.LoadModeTypesInfo, p.GetLoadMode())
	}
	_, err = create(map[string]any{"unknown": true})
	assert.Error(t, err)
}
