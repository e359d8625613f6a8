package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/catalog"
	"github.com/eventseries/eventseries/cmd/eventsmigrate/internal/driver"
)

// runCatalog lists the events of a program, or compares them with a file.
func runCatalog(args []string, stdout, stderr io.Writer) int {
	fail := func(err error) int { return badInput(stderr, err) }
	var format, check, tags string
	var update, lines bool
	set := flag.NewFlagSet("eventsmigrate catalog", flag.ContinueOnError)
	set.StringVar(&format, "format", "markdown", "markdown or json")
	set.StringVar(&check, "check", "", "compare the catalogue with a `file`, and print the difference")
	set.BoolVar(&update, "update", false, "write the file of -check")
	set.BoolVar(&lines, "lines", false, "print line numbers")
	set.StringVar(&tags, "tags", "", "build tags, separated by commas")
	const help = "usage: eventsmigrate catalog [flags] packages\n\nIt lists the events that a program can emit."
	if code, ok := parse(set, args, help, stdout, stderr); !ok {
		return code
	}
	if update && check == "" {
		return fail(errors.New("-update needs -check, which names the file"))
	}
	render, ok := renderers[format]
	if !ok {
		return fail(fmt.Errorf("unknown -format=%s: want markdown or json", format))
	}
	programs, packages, err := driver.LoadProgram(driver.Config{Patterns: set.Args(), Tags: tags})
	if err != nil {
		return fail(err)
	}
	c, calls := catalog.New(programs, packages, lines)
	got, err := render(c)
	if err != nil {
		return fail(err)
	}
	if check == "" {
		_, _ = stdout.Write(got)
		fmt.Fprintf(stderr, "%d events from %d calls; %d fields are open\n", len(c.Events), calls, len(c.Open))
		return exitOK
	}
	want, err := os.ReadFile(check)
	exists := err == nil
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n")) // git for Windows writes these
	switch {
	case errors.Is(err, os.ErrNotExist) && !update:
		return fail(fmt.Errorf("%w; with -update, the command writes the file", err))
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fail(err)
	case exists && string(got) == string(want):
		return exitOK
	}
	if exists {
		printDiff(stdout, filepath.ToSlash(check), want, got)
	}
	if !update {
		fmt.Fprintf(stderr, "eventsmigrate: the events of the program differ from %s; with -update, the command writes the file\n", check)
		return exitFindings
	}
	if err := os.WriteFile(check, got, 0o644); err != nil { //nolint:gosec // a page for everybody
		return fail(err)
	}
	return exitOK
}

// renderers are the formats.
var renderers = map[string]func(*catalog.Catalog) ([]byte, error){
	"markdown": func(c *catalog.Catalog) ([]byte, error) { return c.Markdown(), nil },
	"json":     (*catalog.Catalog).JSON,
}
