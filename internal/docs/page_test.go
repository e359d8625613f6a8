package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is where the repository is, seen from here.
var root = filepath.Join("..", "..")

// page is a file of Markdown. What is known of it is what the tests look at: this
// is no parser of the language.
type page struct {
	path    string // from root, with slashes
	prose   []line // what is not in a block
	blocks  []block
	anchors []string
}

type line struct {
	number int
	text   string
}

// block is a fenced block of code.
type block struct {
	number   int // of the line that begins it
	language string
	from     []string // the files that it says it is from
	lines    []string
}

var (
	heading  = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	fence    = regexp.MustCompile("^ *(```+|~~~+)([a-z]*)$")
	fromMark = regexp.MustCompile(`^<!-- from: (.+) -->$`)
)

// pages returns all pages of the repository.
func pages(t *testing.T) []*page {
	t.Helper()
	var all []*page
	walk(t, ".md", func(path string) { all = append(all, readPage(t, path)) })
	require.Greater(t, len(all), 5)
	return all
}

// readPage reads the page at a path from root.
func readPage(t *testing.T, path string) *page {
	t.Helper()
	p := &page{path: path}
	var current *block
	var closing string
	var from []string
	for i, text := range strings.Split(read(t, path), "\n") {
		mark := fence.FindStringSubmatch(text)
		switch {
		case current != nil && strings.TrimSpace(text) == closing:
			p.blocks = append(p.blocks, *current)
			current = nil
		case current != nil:
			current.lines = append(current.lines, text)
		case mark != nil:
			current, closing = &block{number: i + 1, language: mark[2], from: from}, mark[1]
			from = nil
		case fromMark.MatchString(text):
			from = strings.Fields(fromMark.FindStringSubmatch(text)[1])
		default:
			if strings.TrimSpace(text) != "" {
				assert.Empty(t, from, "%s:%d: a mark without a block", path, i+1)
				from = nil
			}
			if h := heading.FindStringSubmatch(text); h != nil {
				p.anchors = append(p.anchors, anchorOf(h[1], p.anchors))
			}
			p.prose = append(p.prose, line{i + 1, text})
		}
	}
	require.Nil(t, current, "%s: a block without an end", path)
	return p
}

// anchorOf returns the anchor that GitHub gives a heading, when it has given these
// to those before it.
func anchorOf(heading string, before []string) string {
	heading = link.ReplaceAllString(heading, "$1")
	anchor := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
	for n, unique := 0, anchor; ; {
		if !slices.Contains(before, unique) {
			return unique
		}
		n++
		unique = anchor + "-" + string(rune('0'+n))
	}
}

func TestAnchorOf(t *testing.T) {
	for heading, want := range map[string]string{
		"Options":                             "options",
		"What is wrong when …":                "what-is-wrong-when-",
		"From client-go/tools/events":         "from-client-gotoolsevents",
		"`Eventf`, and a [link](x.md) in it!": "eventf-and-a-link-in-it",
	} {
		assert.Equal(t, want, anchorOf(heading, nil))
	}
	assert.Equal(t, "again-1", anchorOf("Again", []string{"again"}))
}

// tableAfter returns the rows of the first table after a line that begins so,
// without its head, each with its cells.
func (p *page) tableAfter(t *testing.T, start string) [][]string {
	t.Helper()
	var rows [][]string
	found := false
	for _, l := range p.prose {
		switch {
		case !found:
			found = strings.HasPrefix(l.text, start)
		case strings.HasPrefix(l.text, "|"):
			cells := strings.Split(strings.Trim(l.text, "| "), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		case len(rows) > 0:
			require.Greater(t, len(rows), 2, "%s:%d", p.path, l.number)
			return rows[2:]
		}
	}
	require.Greater(t, len(rows), 2, "%s has no table after %q", p.path, start)
	return rows[2:]
}

// codes returns what is between backticks in a text.
func codes(text string) (all []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}

// read returns the file at a path from root.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	require.NoError(t, err)
	return string(content)
}

// walk calls f with the path from root of every file whose name ends so.
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
