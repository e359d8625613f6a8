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

// run has the commands of the pages that are not targets of make, and the tests that
// do what they do.
var run = map[string]string{
	"kubectl apply -f events.yaml": "TestFlowControlManifest",
	`kubectl get --raw /metrics | grep 'apiserver_flowcontrol_dispatched_requests_total.*flow_schema="eventseries"'`: "TestFlowControlManifest",
}

var (
	makeTarget   = regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*## `)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
)

// Every command is one of make's targets, or one that a test runs. That holds for
// those in blocks, and for what begins with "make" in a sentence.
func TestCommands(t *testing.T) {
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[match[1]] = true
	}
	require.True(t, targets["test"] && targets["demo"])
	unused := maps.Clone(run)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language != "sh" {
				continue
			}
			for i, text := range b.lines {
				command, _, _ := strings.Cut(text, " #")
				command = strings.TrimSpace(command)
				delete(unused, command)
				assert.NoError(t, checkCommand(command, targets), "%s:%d", p.path, b.number+1+i)
			}
		}
		for _, l := range p.prose {
			for _, text := range codes(l.text) {
				if strings.HasPrefix(text, "make ") {
					assert.NoError(t, checkCommand(text, targets), "%s:%d", p.path, l.number)
				}
			}
		}
	}
	assert.Empty(t, slices.Collect(maps.Keys(unused)), "in no page any more")

	tests := map[string]bool{}
	walk(t, "_test.go", func(path string) {
		for _, match := range testFunction.FindAllStringSubmatch(read(t, path), -1) {
			tests[match[1]] = true
		}
	})
	for command, test := range run {
		assert.True(t, tests[test], "%s: no test %s", command, test)
	}
}

// checkCommand returns an error unless a command is a call of make with targets
// that there are, or is known.
func checkCommand(command string, targets map[string]bool) error {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil
	}
	if words[0] != "make" {
		if _, ok := run[command]; !ok {
			return fmt.Errorf("nothing is known to run %q", command)
		}
		return nil
	}
	n := 0
	for _, word := range words[1:] {
		if strings.Contains(word, "=") {
			continue
		}
		if !targets[word] {
			return fmt.Errorf("%q: make has no target %q", command, word)
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("%q: no target", command)
	}
	return nil
}

func TestCheckCommand(t *testing.T) {
	targets := map[string]bool{"demo": true, "test": true}
	for command, ok := range map[string]bool{
		"make demo": true, "make test demo": true, "make demo DEMO_FLAGS=--keep": true, "": true,
		"make": false, "make demos": false, "make test bench": false, "rm -rf /": false, "kubectl apply -f events.yaml": true,
	} {
		assert.Equal(t, ok, checkCommand(command, targets) == nil, command)
	}
}

// Each target of make is in the list of CONTRIBUTING.md, or needs no words.
func TestTargetsAreDocumented(t *testing.T) {
	text := read(t, "CONTRIBUTING.md")
	for _, match := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if name := match[1]; name != "help" && name != "clean" {
			assert.Contains(t, text, "make "+name, "CONTRIBUTING.md")
		}
	}
}
