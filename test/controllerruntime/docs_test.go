package controllerruntime

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var quotation = regexp.MustCompile("(?s)<!-- from: (\\S+) -->\n\n```go\n(.*?)```")

// What the documentation quotes to be copied is what is tested, to the last line.
func TestDocumentationQuotesTheCode(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "manager.md"))
	require.NoError(t, err)
	var quoted []string
	for _, match := range quotation.FindAllStringSubmatch(string(page), -1) {
		file, quote := match[1], match[2]
		if path.Dir(file) != "test/controllerruntime" || strings.HasSuffix(file, "_test.go") {
			continue // a part of it; internal/docs looks at that
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		_, code, ok := strings.Cut(string(source), "package controllerruntime\n\n")
		require.True(t, ok, file)
		assert.Equal(t, code, quote, file)
		quoted = append(quoted, filepath.Base(file))
	}
	assert.Equal(t, []string{"manager.go", "recorder.go", "recorder_v0_24.go"}, quoted)
}
