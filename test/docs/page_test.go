package docs

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the path of the repository. All other paths are relative to it.
var root = filepath.Join("..", "..")

// page is a Markdown page. readPage parses only what the tests need.
type page struct {
	path    string
	prose   []string // the lines, which are empty in blocks
	blocks  []block
	anchors []string
}

// block is a fenced code block.
type block struct {
	language string
	from     []string // the files that contain the code
	lines    []string
}

var (
	heading     = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	fenced      = regexp.MustCompile("(?m)^(?:<!-- from: (.+) -->\n+)? *```([a-z]*)\n((?s:.*?))^ *```$")
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{Nd}_ -]`)
	cellBorder  = regexp.MustCompile(`\s*\|\s*`)
	code        = regexp.MustCompile("`[^`]*`")
)

func pages(t *testing.T) map[string]*page {
	t.Helper()
	all := map[string]*page{}
	walk(t, ".md", func(path string) { all[path] = readPage(t, path) })
	require.Greater(t, len(all), 5)
	return all
}

func readPage(t *testing.T, path string) *page {
	t.Helper()
	p := &page{path: path}
	prose := fenced.ReplaceAllStringFunc(read(t, path), func(text string) string {
		match := fenced.FindStringSubmatch(text)
		lines := strings.Split(strings.TrimSuffix(match[3], "\n"), "\n")
		p.blocks = append(p.blocks, block{from: strings.Fields(match[1]), language: match[2], lines: lines})
		return strings.Repeat("\n", strings.Count(text, "\n")) // keeps the line numbers
	})
	require.NotContains(t, prose, "```", "%s: unclosed block", path)
	p.prose = strings.Split(prose, "\n")
	for _, match := range heading.FindAllStringSubmatch(prose, -1) {
		p.anchors = append(p.anchors, anchorOf(match[1]))
	}
	return p
}

// anchorOf returns the anchor that GitHub generates for a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// tableAfter returns the cells of the first table after a line with the given prefix,
// without the header.
func (p *page) tableAfter(t *testing.T, prefix string) [][]string {
	t.Helper()
	start := slices.IndexFunc(p.prose, func(text string) bool { return strings.HasPrefix(text, prefix) })
	require.GreaterOrEqual(t, start, 0, "%s: no line starts with %q", p.path, prefix)
	var rows [][]string
	for _, text := range p.prose[start+1:] {
		if strings.HasPrefix(text, "|") {
			rows = append(rows, cells(text))
		} else if len(rows) > 0 {
			break
		}
	}
	require.Greater(t, len(rows), 2, "%s: no table after %q", p.path, prefix)
	return rows[2:]
}

// cells returns the cells of a row.
func cells(row string) []string { return cellBorder.Split(strings.Trim(row, "| "), -1) }

// codes returns the code spans in a text.
func codes(text string) (all []string) {
	for _, span := range code.FindAllString(text, -1) {
		all = append(all, strings.Trim(span, "`"))
	}
	return all
}

// commands returns the code spans and the lines of blocks of commands.
func (p *page) commands() []string {
	all := codes(strings.Join(p.prose, "\n"))
	for _, b := range p.blocks {
		if b.language == "sh" {
			all = append(all, b.lines...)
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	require.NoError(t, err)
	return string(content)
}

// walk calls f with the path of every file whose name has the given suffix.
func walk(t *testing.T, suffix string, f func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == "bin" || path == ".git" || entry.Name() == "testdata" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, suffix):
			f(path)
		}
		return nil
	})
	require.NoError(t, err)
}

// The pages stay short enough to be read.
func TestWords(t *testing.T) {
	words := 0
	for file := range pages(t) {
		if file != "README.md" && file != "CONTRIBUTING.md" && path.Dir(file) != "docs" {
			continue
		}
		for line := range strings.Lines(read(t, file)) {
			if file != "docs/benchmarks.md" || !strings.HasPrefix(line, "|") { // tables of measurements
				words += len(strings.Fields(line))
			}
		}
	}
	t.Log(words)
	assert.LessOrEqual(t, words, 22_000)
}

var link = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)`)

func TestLinksResolve(t *testing.T) {
	all := pages(t)
	for _, p := range all {
		for i, text := range p.prose {
			for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
				assert.NoError(t, resolve(all, p, match[1]), "%s:%d", p.path, i+1)
			}
		}
	}
}

// resolve returns an error unless a link target is an existing file or heading, or a URL.
func resolve(all map[string]*page, from *page, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Scheme == "https" && strings.Contains(u.Host, ".") {
		return err
	}
	file := from.path
	if u.Path != "" {
		file = path.Join(path.Dir(from.path), u.Path)
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	if to := all[file]; u.Fragment != "" && (to == nil || !slices.Contains(to.anchors, u.Fragment)) {
		return fmt.Errorf("%s: no such heading", target)
	}
	return nil
}
