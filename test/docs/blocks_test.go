package docs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBlocksContainTestedCode(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch b.language {
			case "go", "yaml", "json", "diff":
				n++
				for _, side := range b.sides() {
					assert.NoError(t, side.check(func(path string) string { return read(t, path) }), p.path)
				}
			case "sh", "mermaid", "text":
				assert.Empty(t, b.from, p.path) // other tests check these blocks
			default:
				t.Errorf("%s: unsupported language %q: use go, yaml, json or diff with a from mark, or sh, mermaid or text", p.path, b.language)
			}
		}
	}
	assert.Greater(t, n, 10)
}

// sides returns what a diff shows before and after the change, without what it only
// removes or only adds. Other blocks have one side.
func (b *block) sides() (sides []*block) {
	if b.language != "diff" {
		return []*block{b}
	}
	for _, sign := range []string{"-", "+"} {
		side := &block{from: b.from}
		for _, line := range b.lines {
			if strings.HasPrefix(line, sign) || strings.HasPrefix(line, " ") || line == "" {
				side.lines = append(side.lines, strings.TrimPrefix(line, line[:min(1, len(line))]))
			}
		}
		sides = append(sides, side)
	}
	return sides
}

var (
	lineBreak    = regexp.MustCompile(`\s*\n\s*`)
	singleImport = regexp.MustCompile(`(?m)^import ((?:\w+ )?"[^"]+")$`)
	separator    = regexp.MustCompile(`(?m)^\s*(// .*)?$`)
)

// check returns an error unless the files in b.from contain the block, either in one
// piece or by paragraphs. Comments and empty lines separate paragraphs.
func (b *block) check(read func(path string) string) error {
	if len(b.from) == 0 {
		return fmt.Errorf("no from mark before the block")
	}
	var files []string
	for _, path := range b.from {
		files = append(files, normalize(read(path)))
	}
	found := func(part string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return strings.Contains(file, normalize(part)) })
	}
	text := strings.Join(b.lines, "\n")
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("empty block")
	}
	if found(text) {
		return nil
	}
	for _, paragraph := range separator.Split(text, -1) {
		if strings.TrimSpace(paragraph) != "" && !found(paragraph) {
			return fmt.Errorf("not in %v:\n%s", b.from, paragraph)
		}
	}
	return nil
}

// normalize removes empty lines and indentation. It formats an import declaration like a
// line of several imports.
func normalize(text string) string {
	text = lineBreak.ReplaceAllString("\n"+text+"\n", "\n")
	return singleImport.ReplaceAllString(text, "$1")
}

func TestBlockCheck(t *testing.T) {
	files := map[string]string{
		"a.go": "package a\n\nimport (\n\t\"fmt\"\n)\n\nfunc A() {\n\tfirst()\n\n\t// why\n\tsecond()\n}\n",
		"b.go": "package b\n\nfunc B() {\n\tthird()\n}\n",
	}
	for text, valid := range map[string]bool{
		"first()":                               true,
		"// before\nfirst()\n// after\nthird()": true,
		"first()\n\n// why\nsecond()":           true,
		"second()\n\nfirst()":                   true,
		"func B() {\n    third()\n}":            true,
		"first()\nsecond()":                     false, // the comment between them is missing
		"fourth()":                              false,
		"first()\n\nfourth()":                   false,
		"import \"fmt\"\n\nfirst()":             true,
		"import \"io\"":                         false,
		"first() // and":                        false,
		"second()\nthird()":                     false,
		"":                                      false,
	} {
		b := &block{from: []string{"a.go", "b.go"}, lines: strings.Split(text, "\n")}
		assert.Equal(t, valid, b.check(func(path string) string { return files[path] }) == nil, text)
	}
	assert.Error(t, (&block{lines: []string{"first()"}}).check(nil), "no from mark")

	diff := &block{language: "diff", lines: strings.Split("-first()\n+third()\n\n second()", "\n")}
	assert.Equal(t, []*block{{lines: []string{"first()", "", "second()"}}, {lines: []string{"third()", "", "second()"}}}, diff.sides())
}

// testOf maps the commands that are not targets of make to the tests that run them.
var testOf = map[string]string{
	"eventsmigrate ./...":                                                       "TestFix",
	"eventsmigrate -diff -related ./...":                                        "TestFix",
	"eventsmigrate -fix -related ./...":                                         "TestFix",
	"eventsmigrate catalog ./...":                                               "TestCatalog",
	"eventsmigrate catalog -check docs/events.md -update ./...":                 "TestCatalogCheck",
	"eventsmigrate catalog -check docs/events.md ./...":                         "TestCatalogCheck",
	"eventsmigrate catalog -format=alerts ./...":                                "TestCatalog",
	`go vet -vettool="$(which eventsmigrate)" ./...`:                            "TestVetTool",
	"kubectl apply -f events.yaml":                                              "TestFlowControlManifest",
	"kubectl get events -A -l eventseries.dev/state=Ongoing":                    "TestLabelsSelectEvents",
	"kubectl get events -A -l 'eventseries.dev/state notin (Finished,Unknown)'": "TestLabelsSelectEvents",
	`kubectl auth can-i create events.events.k8s.io -n shop --as system:serviceaccount:backup-system:backup-controller`:                             "TestMigratedProgram",
	`kubectl auth can-i patch events.events.k8s.io -n shop --as system:serviceaccount:backup-system:backup-controller`:                              "TestMigratedProgram",
	`kubectl get events -n shop --field-selector reportingComponent=backup-controller`:                                                              "TestMigratedProgram",
	`kubectl get events.events.k8s.io -n shop -o 'custom-columns=REASON:.reason,COUNT:.series.count,STATE:.metadata.labels.eventseries\.dev/state'`: "TestMigratedProgram",
	`kubectl get --raw /metrics | grep 'apiserver_request_total{.*group="events.k8s.io".*resource="events"'`:                                        "TestMigratedProgram",
	`kubectl get --raw /metrics | grep 'apiserver_flowcontrol_dispatched_requests_total.*flow_schema="eventseries"'`:                                "TestFlowControlManifest",
}

var (
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*## `)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// namesIn returns the first submatches of a regular expression.
func namesIn(text string, names *regexp.Regexp) map[string]bool {
	all := map[string]bool{}
	for _, match := range names.FindAllStringSubmatch(text, -1) {
		all[match[1]] = true
	}
	return all
}

// A command is a line of a block, or a code span that starts with "make".
func TestCommandsAreTested(t *testing.T) {
	targets := namesIn(read(t, "Makefile"), makeTarget)
	require.True(t, targets["test"] && targets["demo"])
	text := read(t, "CONTRIBUTING.md")
	for name := range targets {
		assert.True(t, name == "help" || name == "clean" || strings.Contains(text, "make "+name), "CONTRIBUTING.md: no make %s", name)
	}
	undocumented := maps.Clone(testOf)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "sh" {
				continue
			}
			for _, text := range b.lines {
				command, _, _ := strings.Cut(text, " #")
				command = strings.TrimSpace(command)
				delete(undocumented, command)
				assert.NoError(t, checkCommand(command, targets), p.path)
			}
		}
		for i, text := range p.prose {
			for _, command := range codes(text) {
				if strings.HasPrefix(command, "make ") {
					assert.NoError(t, checkCommand(command, targets), "%s:%d", p.path, i+1)
				}
			}
		}
	}
	assert.Empty(t, undocumented, "no page contains these commands")

	tests := map[string]bool{}
	walk(t, "_test.go", func(path string) { maps.Copy(tests, namesIn(read(t, path), testFunction)) })
	for command, test := range testOf {
		assert.True(t, tests[test], "%s: no test %s", command, test)
	}
}

// checkCommand returns an error unless a command calls existing targets of make, or a test
// runs it.
func checkCommand(command string, targets map[string]bool) error {
	words := strings.Fields(command)
	if len(words) == 0 || testOf[command] != "" {
		return nil
	}
	if words[0] != "make" {
		return fmt.Errorf("no test runs %q", command)
	}
	words = slices.DeleteFunc(words[1:], func(word string) bool { return strings.Contains(word, "=") })
	if len(words) == 0 {
		return fmt.Errorf("%q has no target", command)
	}
	for _, word := range words {
		if !targets[word] {
			return fmt.Errorf("%q: make has no target %q", command, word)
		}
	}
	return nil
}

func TestCheckCommand(t *testing.T) {
	targets := map[string]bool{"demo": true, "test": true}
	for _, command := range []string{"make", "make A=b", "make demos", "make test bench", "rm -rf /"} {
		assert.Error(t, checkCommand(command, targets), command)
	}
	assert.NoError(t, checkCommand("make test demo DEMO_FLAGS=--keep", targets))
}
