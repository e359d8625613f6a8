package docs

import (
	"fmt"
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

var (
	link = regexp.MustCompile(`!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)`)
	code = regexp.MustCompile("`[^`]*`")
)

// Every link leads to a file of the repository and a heading in it, or has the form
// of one that leads elsewhere. There is no network here.
func TestLinks(t *testing.T) {
	all := map[string]*page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	n := 0
	for _, p := range all {
		for _, l := range p.prose {
			for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(l.text, ""), -1) {
				n++
				assert.NoError(t, follow(all, p, match[2]), "%s:%d", p.path, l.number)
			}
		}
	}
	assert.Greater(t, n, 30)
}

// follow returns an error if a link on a page leads nowhere.
func follow(all map[string]*page, from *page, target string) error {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return err
	case u.Scheme == "https" && strings.Contains(u.Host, ".") && u.User == nil:
		return nil
	case u.Scheme != "" || u.Host != "":
		return fmt.Errorf("%s: neither https nor a file", target)
	}
	file := from.path
	if u.Path != "" {
		file = path.Join(path.Dir(from.path), u.Path)
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	if u.Fragment == "" {
		return nil
	}
	to, ok := all[file]
	if !ok {
		return fmt.Errorf("%s: not a page", target)
	}
	if !slices.Contains(to.anchors, u.Fragment) {
		return fmt.Errorf("%s: none of %v", target, to.anchors)
	}
	return nil
}

func TestFollow(t *testing.T) {
	all := map[string]*page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	from := all["docs/migration.md"]
	require.NotNil(t, from)
	for target, ok := range map[string]bool{
		"manager.md": true, "../README.md#use": true, "#permissions": true, "rbac": true, "https://example.com/x#y": true,
		"no.md": false, "../README.md#no": false, "#no": false, "http://example.com": false, "ftp://example.com": false,
		"https://localhost/x": false, "../../outside.md": false, "rbac/recorder.yaml#x": false,
	} {
		assert.Equal(t, ok, follow(all, from, target) == nil, target)
	}
}
