package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests that pages name exist. TestFacts checks those in facts.txt.
func TestNamedTestsExist(t *testing.T) {
	tests := testsIn(t)
	for _, p := range pages(t) {
		for i, line := range p.prose {
			for _, name := range testName.FindAllString(line, -1) {
				assert.True(t, tests[name] || name == "TestSink", "%s:%d: no test %s", p.path, i+1, name)
			}
		}
	}
}

var (
	pagePath = regexp.MustCompile(`\b((?:docs|cmd)/[\w/-]+\.md)(?:#([\w-]+))?`)
	notPages = regexp.MustCompile(`\.(md|svg|sum)$|^docs/benchmarks/results`)
)

// Code, manifests, and scripts name pages and headings that exist, as the links of alerts do.
func TestPagesThatFilesNameExist(t *testing.T) {
	all, n := pages(t), 0
	walk(t, "", func(path string) {
		if notPages.MatchString(path) {
			return
		}
		for _, match := range pagePath.FindAllStringSubmatch(read(t, path), -1) {
			if to := all[match[1]]; assert.NotNil(t, to, "%s names %s", path, match[0]) && match[2] != "" {
				assert.Contains(t, to.anchors, match[2], "%s names %s", path, match[0])
				n++
			}
		}
	})
	assert.Greater(t, n, 5)
}

var (
	longFlag  = regexp.MustCompile(`(?:^|[\s(/])--([a-z][a-z-]+)`)
	shortFlag = regexp.MustCompile(`^-([a-z]{2,})\b`) // of package flag
)

// Flags of kubectl, krew, kube-apiserver, gh, gremlins, and grep.
var othersFlags = map[string]bool{
	"sort-by": true, "as": true, "raw": true, "context": true, "event-ttl": true, "repo": true, "manifest-url": true, "timeout-coefficient": true, "include": true, "exclude-dir": true,
}

// Programs of this project have the flags that pages name.
func TestFlagsExist(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{"cmd/*/*.go", "cmd/kubectl-series/internal/cli/*.go", "cmd/eventsmigrate/*/*.go", "cmd/kubectl-series/release/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			path, err := filepath.Rel(root, file)
			require.NoError(t, err)
			source.WriteString(read(t, path))
		}
	}
	for _, p := range pages(t) {
		for _, text := range p.commands() {
			names := longFlag.FindAllStringSubmatch(text, -1)
			if p.path == "docs/catalog.md" || p.path == "cmd/eventsmigrate/README.md" {
				names = append(names, shortFlag.FindAllStringSubmatch(text, -1)...)
			}
			for _, match := range names {
				assert.True(t, othersFlags[match[1]] || strings.Contains(source.String(), `"`+match[1]+`"`), "%s: %q: no flag %s", p.path, text, match[1])
			}
		}
	}
}
