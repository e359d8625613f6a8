package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
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

// run moves the program. Its packages are among those that are loaded, below a directory of the
// module.
func (p *program) run(t *testing.T, loaded *driver.Packages, dir, below string, f flags) {
	t.Helper()
	p.opts.Target = p.target
	r, err := loaded.Move(p.opts, path.Join(p.module, below, p.name))
	require.NoError(t, err)
	module := filepath.Join(dir, below)
	p.r, p.dir = r, module
	if p.name != string(p.target) {
		p.dir = filepath.Join(module, p.name)
		r.Manifests = nil // of all programs
	}
	within := func(d driver.Diagnostic) bool {
		return strings.HasPrefix(d.Pos.Filename, filepath.Join(module, p.name))
	}
	r.Missed = slices.DeleteFunc(slices.Clone(r.Missed), func(d driver.Diagnostic) bool { return !within(d) })
	var b bytes.Buffer
	report(&b, p.dir, r, f)
	p.out = fmt.Sprintf("exit code %d\n\n%s", exitCode(r, f), b.String())
}

// golden returns the name of the golden file of a changed one.
func (p *program) golden(name string) string {
	if p.name == string(p.target) {
		return name + ".golden"
	}
	return name + "." + string(p.target)
}

// The input of each golden file is the file beside it. The packages of a module load once, since
// that takes seconds: as they are, and with their golden files. Another move of these changes
// nothing, and what a person must decide is in both reports. Each program is moved alone, since
// its recorders depend on its managers.
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
			var others []string
			if filepath.Base(dir) == "testdata" {
				others = []string{"order", "permissions"}
			}
			loaded, copied := testGolden(t, dir, programs, others)
			if others != nil {
				t.Run("order", func(t *testing.T) { testOrder(t, loaded, copied) })
				t.Run("permissions", func(t *testing.T) { testPermissions(t, loaded) })
			}
		})
	}
}

// testGolden returns what it loads, with other packages, from a copy of the module.
func testGolden(t *testing.T, dir string, programs []*program, others []string) (loaded *driver.Packages, copied string) {
	t.Helper()
	copied = copyModule(t, dir, append([]string{"charts", "config", "kubernetes"}, others...)...)
	var patterns []string
	for _, name := range others {
		patterns = append(patterns, "./"+name+"/...")
	}
	for _, p := range programs {
		copyProgram(t, dir, copied, "", p)
		patterns = append(patterns, "./"+p.name+"/...")
		if !*update { // golden files can be wrong until they are written
			copyProgram(t, dir, copied, p.moved(), p)
			patterns = append(patterns, "./"+p.moved()+"/"+p.name+"/...")
		}
	}
	loaded, err := driver.Load(driver.Config{Dir: copied, Patterns: patterns})
	require.NoError(t, err)
	for _, p := range programs {
		p.run(t, loaded, copied, "", flags{actions: filepath.Join(copied, "actions.yaml"), fix: true, verbose: true})
		original := filepath.Join(dir, relative(copied, p.dir))
		golden(t, filepath.Join(original, string(p.target)+".report"), []byte(p.out))
		for name, src := range p.r.Changed {
			golden(t, p.golden(filepath.Join(dir, relative(copied, name))), src)
		}
		assert.Len(t, p.r.Changed, goldenFiles(t, filepath.Join(dir, p.name), filepath.Ext(p.golden(""))), "golden files without an output: %s", p.name)
		if *update {
			continue
		}
		again := *p
		again.run(t, loaded, copied, p.moved(), flags{fix: true, verbose: true})
		assert.Empty(t, slices.Sorted(maps.Keys(again.r.Changed)), "a second run changes files")
		assert.ElementsMatch(t, findings(again.dir, again.r), findings(p.dir, p.r), p.name)
		assert.Equal(t, exitCode(p.r, flags{fix: true}), exitCode(again.r, flags{fix: true}), again.out)
		assert.Equal(t, p.r.Plan.Others, again.r.Plan.Others, again.out)
	}
	return loaded, copied
}

// moved returns the directory of the program with the golden files.
func (p *program) moved() string { return "moved/" + string(p.target) }

// copyProgram copies a program, with its golden files if it gets below a directory.
func copyProgram(t *testing.T, dir, copied, below string, p *program) {
	t.Helper()
	for _, suffix := range []string{"", "-outside"} {
		from := filepath.Join(dir, p.name+suffix)
		if _, err := os.Stat(from); err != nil {
			continue
		}
		require.NoError(t, fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			src, err := os.ReadFile(filepath.Join(from, name))
			if below != "" {
				if moved, err := os.ReadFile(p.golden(filepath.Join(from, name))); err == nil {
					src = moved
				}
				src = bytes.ReplaceAll(src, []byte(p.module+"/"+p.name), []byte(path.Join(p.module, below, p.name)))
			}
			to := filepath.Join(copied, below, p.name+suffix, name)
			return cmp.Or(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, src, 0o600))
		}))
	}
}

// findings returns what the linter reports, the actions that nobody has named, the roles that
// lack something, and the managers that may not emit series.
func findings(dir string, r *driver.Result) (list []string) {
	for _, d := range r.Lint {
		list = append(list, relative(dir, d.Pos.Filename)+": "+d.Text)
	}
	for _, i := range r.Plan.Items {
		if slices.Contains([]string{"action", "RBAC", "manager"}, i.Rule) && i.Status == move.Decide {
			list = append(list, i.Text)
		}
	}
	return list
}

// A broadcaster of compat/record writes to the core group, so its program needs no rule for
// the other one.
func testPermissions(t *testing.T, loaded *driver.Packages) {
	t.Helper()
	for program, want := range map[string]int{"core": 0, "library": 0, "coresink": 0, "tests": 0, "moved": 1, "suite": 1, "options": 1} {
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
	dir := copyStubs(t, "eventseries/generated")
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
	dir, err := filepath.Abs(filepath.Join("testdata", "stubs"))
	require.NoError(t, err)
	analysistest.RunWithSuggestedFixes(t, dir, analyzers.Lint, "./lint/...")
}

func TestBadInput(t *testing.T) {
	stubs, err := filepath.Abs(filepath.Join("testdata", "stubs"))
	require.NoError(t, err)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	module := copyStubs(t, "order/generated")
	out, code := start(t, module, "go", "mod", "edit", "-droprequire="+root)
	require.Zero(t, code, out)
	require.NoError(t, os.CopyFS(in("module"), os.DirFS(module)))
	require.NoError(t, os.CopyFS(in("workspace"), os.DirFS(module)))
	for name, src := range map[string]string{
		"invalid": "- a list\n", "lower": "Created: create\n", "twice": "Created: Create\nCreated: Make\n", "documents": "Created: Create\n---\nMade: Make\n",
		"broken/go.mod": "module example.com/broken\n\ngo 1.26.0\n", "broken/a.go": "package broken\n\nvar a int = \"\"\n", "empty/README.md": "", "workspace/go.work": "go 1.26.0\n\nuse .\n",
		"missing/go.mod": "module example.com/missing\n\ngo 1.26.0\n\nrequire example.com/api v1.0.0\n\nreplace example.com/api => ./api\n",
		"missing/a.go":   "package missing\n\nimport _ \"example.com/api\"\n", "module/order/generated/code_test.go": "package generated\n\nfunc init() { undefined(); missing() }\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(in(name)), 0o700))
		require.NoError(t, os.WriteFile(in(name), []byte(src), 0o600))
	}
	for _, c := range []struct {
		dir  string
		args []string
		want string
	}{
		{stubs, nil, "no packages"},
		{stubs, []string{"-to=nowhere", "./..."}, "unknown -to=nowhere"},
		{stubs, []string{"-to", "record"}, "no packages"},
		{stubs, []string{"-nonsense", "./..."}, "-nonsense"},
		{stubs, []string{"-fix", "-diff", "./..."}, "exclude each other"},
		{stubs, []string{"-actions=/does/not/exist", "./..."}, "/does/not/exist"},
		{stubs, []string{"-actions=" + in("invalid"), "./..."}, "want lines such as"},
		{stubs, []string{"-actions=" + in("lower"), "./..."}, `the action "create" of the reason Created`},
		{stubs, []string{"-actions=" + in("twice"), "./..."}, `"Created" already defined`},
		{stubs, []string{"-actions=" + in("documents"), "./..."}, "want one document"},
		{stubs, []string{"./...", "-fix"}, "-fix follows the packages"},
		{stubs, []string{"-tags=a b", "./does/not/exist"}, "do not load"},
		{in("broken"), []string{"./..."}, "a.go:3"},
		// Only the user knows which module of a workspace needs it.
		{in("workspace"), []string{"-diff", "./order/..."}, "run go get " + root + "@v0.0.0: only you know"},
		// It did not compile without the requirements either.
		{in("module"), []string{"./order/..."}, "generated/code_test.go:3:15: undefined: undefined\n"},
		// The module of an import is missing, as in a copy from the module cache.
		{in("missing"), []string{"./..."}, "replacement directory ./api does not exist"},
		{in("empty"), []string{"./..."}, "go.mod"},
		{stubs, []string{"catalog"}, "no packages"},
		{stubs, []string{"catalog", "-format=xml", "."}, "unknown -format=xml"},
		{stubs, []string{"catalog", "-update", "."}, "-update needs -check"},
		{stubs, []string{"catalog", "./does/not/exist"}, "do not load"},
	} {
		t.Chdir(c.dir)
		var stdout, stderr bytes.Buffer
		assert.Equal(t, exitBadInput, run(c.args, &stdout, &stderr), "%v", c.args)
		assert.Contains(t, stderr.String(), c.want, "%v", c.args)
		assert.NotContains(t, stderr.String(), "with what the result needs")
		assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), "one line: %s", stderr.String())
		assert.Empty(t, stdout.String())
	}
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
	dir, outside := copyStubs(t), filepath.Join(t.TempDir(), "a.go")
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
func testOrder(t *testing.T, loaded *driver.Packages, dir string) {
	t.Helper()
	p := &program{module: "example.com/testdata", name: "order", target: move.EventSeries}
	p.run(t, loaded, dir, "", flags{})
	golden(t, filepath.Join("testdata", "order", "report.golden"), []byte(p.out))
}

// asCommand is the variable that makes the tests the command.
const asCommand = "EVENTSMIGRATE_AS_COMMAND"

// The tests run the go command hundreds of times, each for less than a second, of which the
// collection of garbage would take a third.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	_ = os.Setenv("GOGC", "off")
	_ = os.Setenv("GOMEMLIMIT", "1GiB")
	debug.SetGCPercent(400)
	m.Run()
}

// command returns the name of the command.
func command(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	require.NoError(t, err)
	return name
}

// start runs a program in a directory, and returns its output and exit code.
func start(t *testing.T, dir, name string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), asCommand+"=1")
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

func TestFix(t *testing.T) {
	t.Parallel()
	name := command(t)
	dir := copyStubs(t, "eventseries/variants")
	out, code := start(t, dir, "go", "mod", "edit", "-droprequire="+root)
	require.Zero(t, code, out)
	file := filepath.Join(dir, "eventseries", "variants", "related.go")
	require.NoError(t, os.WriteFile(file, []byte("package variants\n\nimport corev1 \"k8s.io/api/core/v1\"\n\n"+
		"func (e *Emitter) evict(node *corev1.Node, pod *corev1.Pod) {\n\te.Recorder.Eventf(node, \"Normal\", \"Evicted\", \"evicted %s\", pod.Name)\n}\n"), 0o640))

	out, code = start(t, dir, name, "./eventseries/...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "-related sets what messages name: pod")
	out, code = start(t, dir, name, "-diff", "-related", "./eventseries/...")
	assert.Equal(t, exitFindings, code, out)
	assert.Contains(t, out, "+++ b/eventseries/variants/related.go\n")
	assert.Contains(t, out, "+require "+root+" v0.0.0\n")
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(src), "node, pod", "without -fix")

	out, code = start(t, dir, name, "-fix", "-related", "./eventseries/...")
	assert.Equal(t, exitOK, code, out)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	assertMoved(t, dir, name, "-related", "./eventseries/...")
}

// root is the path of the module that the result of a move imports.
const root = "github.com/eventseries/eventseries"

// The command adds both modules that the result imports, in the versions that go.mod replaces.
func TestFixAddsModule(t *testing.T) {
	t.Parallel()
	name := command(t)
	dir := copyModule(t, "testdata", "programs/manager")
	for file, line := range map[string]string{"go.mod": "\t" + root + "/controllerruntime v0.0.0-00010101000000-000000000000\n", "require.go": "\t_ \"" + root + "/controllerruntime\"\n"} {
		src, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Contains(t, string(src), line)
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), bytes.Replace(src, []byte(line), nil, 1), 0o600))
	}
	out, code := start(t, dir, name, "-fix", "./programs/...")
	assert.Equal(t, exitOK, code, out)
	src, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	assert.Contains(t, string(src), "\t"+root+"/controllerruntime v0.0.0\n")
	assertMoved(t, dir, name, "./programs/...")
}

// go.mod stays without -fix, although GOFLAGS=-mod=mod, which programs with a vendor directory need,
// lets the go command change it, and if nothing moves, although the result could have needed a module.
func TestGoModStays(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	for pkg, args := range map[string][]string{"eventseries/variants": {"-to=record", "./..."}, "order/generated": {"-fix", "./order/..."}} {
		dir := copyStubs(t, pkg)
		out, code := start(t, dir, "go", "mod", "edit", "-droprequire="+root)
		require.Zero(t, code, out)
		before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		require.NoError(t, err)
		out, code = start(t, dir, command(t), args...)
		assert.NotEqual(t, exitBadInput, code, out)
		after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		require.NoError(t, err)
		assert.Equal(t, string(before), string(after), out)
	}
}

// assertMoved asserts that a moved module has no errors, and that a second run of the tool changes
// nothing.
func assertMoved(t *testing.T, dir string, tool ...string) {
	t.Helper()
	out, code := start(t, dir, tool[0], append([]string{"-diff"}, tool[1:]...)...)
	assert.Zero(t, code, out)
	assert.Empty(t, out)
}

// Packages that get a type that moves through another package compile after the move.
func TestFixIndirect(t *testing.T) {
	t.Parallel()
	name := command(t)
	const imports = "package indirect\n\nimport (\n\t\"k8s.io/client-go/tools/record\"\n\n\t\"example.com/testdata/eventseries-outside/between\"\n)\n\n"
	for _, c := range []struct {
		extra, want string
		code        int
	}{
		{imports + "func keep(record.EventRecorder) {}\n\nfunc init() { keep(between.New().Recorder) }\n", "4 of 4 calls", exitOK},
		// The plan does not understand this, but the type-check does.
		{imports + "type same struct{ Recorder record.EventRecorder }\n\nvar _ = same(*between.New())\n", "does not compile: cannot convert", exitLeft},
	} {
		dir := copyStubs(t, "eventseries/options", "eventseries-outside/between", "eventseries-outside/indirect", "eventseries-outside/farther", "eventseries-outside/inner")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "eventseries-outside", "indirect", "extra.go"), []byte(c.extra), 0o600))
		out, code := start(t, dir, name, "-fix", "./eventseries/...")
		assert.Equal(t, c.code, code, out)
		assert.Contains(t, out, c.want)
		out, code = start(t, dir, name, "-diff", "./eventseries/...")
		assert.Equal(t, c.code, code, out)
		assert.Empty(t, out)
	}
}

// A module with few dependencies, since go vet runs its tool on the source of all.
func TestVetTool(t *testing.T) {
	t.Parallel()
	name := command(t)
	out, code := start(t, filepath.Join("testdata", "stubs"), "go", "vet", "-vettool="+name, ".")
	assert.Equal(t, 1, code, out)
	assert.Contains(t, out, "vet.go:12:11: the regarding object is cluster-scoped")
}

func TestPlugin(t *testing.T) {
	create, err := register.GetPlugin("eventsmigrate")
	require.NoError(t, err)
	p, err := create(nil)
	require.NoError(t, err)
	list, err := p.BuildAnalyzers()
	require.NoError(t, err)
	assert.Equal(t, []*analysis.Analyzer{analyzers.Lint}, list)
	assert.Equal(t, register.LoadModeTypesInfo, p.GetLoadMode())
}
