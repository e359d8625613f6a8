package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every block of code says where it is from, and stands there.
func TestBlocks(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			at := fmt.Sprintf("%s:%d", p.path, b.number)
			switch b.language {
			case "go", "yaml", "json":
				n++
				assert.NoError(t, b.check(func(path string) string { return read(t, path) }), at)
			case "sh", "mermaid", "text":
				assert.Empty(t, b.from, at) // see the other tests
			default:
				t.Errorf("%s: a block of %q: it must be go, yaml or json and say where it is from, or sh, mermaid or text", at, b.language)
			}
		}
	}
	assert.Greater(t, n, 10)
}

// check returns an error if the paragraphs of a block are not all in the files that
// it names, line for line but for the indentation. Lines of comments alone divide
// paragraphs, as empty ones do, unless they are in the file as well.
func (b *block) check(read func(path string) string) error {
	if len(b.from) == 0 {
		return fmt.Errorf("no <!-- from: file --> before it")
	}
	var files [][]string
	for _, path := range b.from {
		files = append(files, trimmed(strings.Split(read(path), "\n")))
	}
	has := func(paragraph []string) bool {
		return slices.ContainsFunc(files, func(file []string) bool { return contains(file, paragraph) })
	}
	lines := trimmed(b.lines)
	if len(lines) == 0 {
		return fmt.Errorf("it is empty")
	}
	if has(lines) {
		return nil
	}
	var paragraph []string
	for i, text := range append(b.lines, "") {
		text = strings.TrimSpace(text)
		if text != "" && !strings.HasPrefix(text, "// ") {
			paragraph = append(paragraph, text)
			continue
		}
		if len(paragraph) > 0 && !has(trimmed(paragraph)) {
			return fmt.Errorf("before line %d of it: not in %v:\n%s", i+1, b.from, strings.Join(paragraph, "\n"))
		}
		paragraph = nil
	}
	return nil
}

// trimmed returns the lines that are not empty, without indentation, and with a
// single import as it is among others.
func trimmed(lines []string) (all []string) {
	for _, text := range lines {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, singleImport.ReplaceAllString(text, "$1"))
		}
	}
	return all
}

var singleImport = regexp.MustCompile(`^import ((?:\w+ )?"[^"]+")$`)

// contains reports whether part is in all, in one piece.
func contains(all, part []string) bool {
	for i := 0; i+len(part) <= len(all); i++ {
		if slices.Equal(all[i:i+len(part)], part) {
			return true
		}
	}
	return false
}

func TestCheckOfABlock(t *testing.T) {
	files := map[string]string{
		"a.go": "package a\n\nimport (\n\t\"fmt\"\n)\n\nfunc A() {\n\tfirst()\n\n\t// why\n\tsecond()\n}\n",
		"b.go": "package b\n\nfunc B() {\n\tthird()\n}\n",
	}
	for text, ok := range map[string]bool{
		"first()":                               true,
		"// before\nfirst()\n// after\nthird()": true,
		"first()\n\n// why\nsecond()":           true,
		"second()\n\nfirst()":                   true,
		"func B() {\n    third()\n}":            true,
		"first()\nsecond()":                     false, // there is something in between
		"fourth()":                              false,
		"first()\n\nfourth()":                   false,
		"import \"fmt\"\n\nfirst()":             true,
		"import \"io\"":                         false,
		"first() // and":                        false,
		"second()\nthird()":                     false,
		"":                                      false,
	} {
		b := &block{from: []string{"a.go", "b.go"}, lines: strings.Split(text, "\n")}
		assert.Equal(t, ok, b.check(func(path string) string { return files[path] }) == nil, text)
	}
	assert.Error(t, (&block{lines: []string{"first()"}}).check(nil), "it does not say where it is from")
}
