package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBlocksContainCompiledCode(t *testing.T) {
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch b.language {
			case "go", "yaml", "json", "diff":
				assert.NotEmpty(t, b.from, "%s: no from mark before a block", p.path)
				assert.Empty(t, b.missing(t), "%s: not in %v", p.path, b.from)
			case "sh", "mermaid", "text":
			default:
				t.Errorf("%s: unsupported language %q", p.path, b.language)
			}
		}
	}
}

// missing returns the lines that no file in b.from contains, except comments. In a diff, it
// ignores the signs.
func (b *block) missing(t *testing.T) (lines []string) {
	t.Helper()
	trim := func(line string) string {
		return strings.TrimPrefix(strings.Join(strings.Fields(line), " "), "import ")
	}
	known := map[string]bool{"": true}
	for _, path := range b.from {
		for line := range strings.Lines(read(t, path)) {
			known[trim(line)] = true
		}
	}
	for _, line := range b.lines {
		if b.language == "diff" {
			line = line[min(1, len(line)):]
		}
		if line = trim(line); !known[line] && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return lines
}

var (
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
	makeCommand = regexp.MustCompile(`\bmake((?: [a-z][a-z-]*)+)`)
)

// Pages name only targets that exist, in blocks of commands and in code spans.
func TestMakeTargetsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[match[1]] = true
	}
	require.True(t, targets["test"] && targets["demo"])
	for _, p := range pages(t) {
		for _, command := range p.commands() {
			command, _, _ = strings.Cut(command, "#")
			if match := makeCommand.FindStringSubmatch(command); match != nil {
				for _, target := range strings.Fields(match[1]) {
					assert.True(t, targets[target], "%s: %q: make has no target %q", p.path, command, target)
				}
			}
		}
	}
}
