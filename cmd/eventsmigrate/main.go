// Command eventsmigrate moves programs from the legacy recorder of Kubernetes events to
// one of events.k8s.io/v1, and finds mistakes in the events of programs.
// README.md has the flags and the exit codes.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/analyzers"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/move"
)

const (
	exitOK = iota
	exitFindings
	exitBadInput
	exitLeft
)

func main() {
	if isVetTool(os.Args[1:]) {
		unitchecker.Main(analyzers.Lint)
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// isVetTool reports whether go vet runs the command: with -V=full, with -flags, or with
// a configuration.
func isVetTool(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "-V=full" || a == "-flags" }) ||
		len(args) > 0 && strings.HasSuffix(args[len(args)-1], ".cfg")
}

type flags struct {
	to, actions, tags           string
	related, diff, fix, verbose bool
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "catalog" {
		return runCatalog(args[1:], stdout, stderr)
	}
	fail := func(err error) int { return badInput(stderr, err) }
	var f flags
	set := flag.NewFlagSet("eventsmigrate", flag.ContinueOnError)
	set.StringVar(&f.to, "to", string(move.EventSeries), "where to move: record or eventseries")
	set.StringVar(&f.actions, "actions", "", "a YAML `file` with the actions of reasons: SuccessfulCreate: CreateJob")
	set.BoolVar(&f.related, "related", false, "set the related objects that messages name")
	set.BoolVar(&f.diff, "diff", false, "print the changes and write nothing")
	set.BoolVar(&f.fix, "fix", false, "write the changes")
	set.StringVar(&f.tags, "tags", "", "build tags, separated by commas")
	set.BoolVar(&f.verbose, "v", false, "list each change in the report")
	if code, ok := parse(set, args, usage, stdout, stderr); !ok {
		return code
	}
	if f.diff && f.fix {
		return fail(errors.New("-diff and -fix exclude each other"))
	}
	if !slices.Contains(move.Targets, move.Target(f.to)) {
		return fail(fmt.Errorf("unknown -to=%s: want record or eventseries", f.to))
	}
	actions, err := readActions(f.actions)
	if err != nil {
		return fail(err)
	}
	r, err := driver.Run(driver.Config{
		Patterns: set.Args(), Tags: f.tags,
		Options: move.Options{Target: move.Target(f.to), Related: f.related, Actions: actions},
	})
	if err != nil {
		return fail(err)
	}
	cwd, _ := os.Getwd() // without it, names are absolute
	names := slices.Sorted(maps.Keys(r.Changed))
	switch {
	case f.diff:
		for _, name := range names {
			printDiff(stdout, relative(cwd, name), r.Source[name], r.Changed[name])
		}
		return exitCode(r, f)
	case f.fix:
		if err := write(r.Changed); err != nil {
			return fail(err)
		}
	}
	report(stdout, cwd, r, f)
	return exitCode(r, f)
}

// exitCode returns the exit code of a move, which README.md describes.
func exitCode(r *driver.Result, f flags) int {
	switch {
	case r.Plan.Stock || r.Plan.Calls.Left > 0:
		return exitLeft
	case !f.fix && (len(r.Changed) > 0 || !f.diff && len(r.Lint) > 0):
		return exitFindings
	}
	return exitOK
}

const usage = "usage: eventsmigrate [flags] packages\n       eventsmigrate catalog [flags] packages\n\n" +
	"The first form reports what it would change, unless -diff or -fix is set. The second one lists the events of a program."

// parse parses flags, which packages follow. If the command ends here, it returns false and
// the exit code.
func parse(set *flag.FlagSet, args []string, help string, stdout, stderr io.Writer) (code int, ok bool) {
	set.SetOutput(io.Discard)
	err := set.Parse(args)
	switch i := slices.IndexFunc(set.Args(), func(a string) bool { return strings.HasPrefix(a, "-") }); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stdout, help)
		set.SetOutput(stdout)
		set.PrintDefaults()
		return exitOK, false
	case err != nil:
	case set.NArg() == 0:
		err = errors.New("no packages: name them, or use ./... for all")
	case i >= 0:
		err = fmt.Errorf("the flag %s follows the packages: flags come first", set.Arg(i))
	}
	if err != nil {
		return badInput(stderr, err), false
	}
	return exitOK, true
}

func badInput(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "eventsmigrate: %s\n", strings.Join(strings.Fields(err.Error()), " "))
	return exitBadInput
}

var upperCamelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,127}$`)

// readActions reads the actions of reasons.
func readActions(name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var actions map[string]string
	d := yaml.NewDecoder(bytes.NewReader(src))
	if err := d.Decode(&actions); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("-actions=%s: want lines such as SuccessfulCreate: CreateJob: %w", name, err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("-actions=%s: want one document", name)
	}
	for _, reason := range slices.Sorted(maps.Keys(actions)) {
		if !upperCamelCase.MatchString(actions[reason]) {
			return nil, fmt.Errorf("-actions=%s: the action %q of the reason %s is not in UpperCamelCase", name, actions[reason], reason)
		}
	}
	return actions, nil
}

// write replaces files, and keeps their permissions. It replaces none if one is read-only.
func write(files map[string][]byte) error {
	perm := map[string]os.FileMode{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, os.ErrNotExist): // go.sum
			perm[name] = 0o644
		case err != nil:
			return err
		case info.Mode().Perm()&0o200 == 0:
			return fmt.Errorf("%s is read-only, so nothing is written", name)
		default:
			perm[name] = info.Mode().Perm()
		}
	}
	for name, src := range files {
		if err := os.WriteFile(name, src, perm[name]); err != nil {
			return err
		}
	}
	return nil
}

func relative(cwd, name string) string {
	if rel, err := filepath.Rel(cwd, name); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel)
	}
	return name
}

func printDiff(w io.Writer, name string, from, to []byte) {
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: splitLines(from), B: splitLines(to), FromFile: "a/" + name, ToFile: "b/" + name, Context: 3,
	})
	fmt.Fprint(w, text)
}

func splitLines(src []byte) (lines []string) {
	for line := range strings.Lines(string(src)) {
		lines = append(lines, line)
	}
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += "\n\\ No newline at end of file\n"
	}
	return lines
}
