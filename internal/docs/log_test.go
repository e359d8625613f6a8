package docs

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const operations = "docs/operations.md"

// logCall is a call of a logger.
type logCall struct {
	at, message, level string
	keys               []string
}

var (
	messageIndex = map[string]int{"Info": 0, "Error": 1} // by method
	verbosity    = regexp.MustCompile(`\.V\((\d+)\)`)
	lowerCamel   = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
)

// logCalls returns the calls of loggers in the packages that users' programs include: the
// calls of Info and Error whose receiver contains "log".
func logCalls(t *testing.T) (calls []*logCall) {
	t.Helper()
	for _, f := range sources(t, ".") {
		if f.test || f.pkg == "main" || f.dir == "internal/safelog" || strings.HasPrefix(f.dir, "internal/controlplane") {
			continue
		}
		for node := range ast.Preorder(f.file) {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				continue
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			message, ok := messageIndex[method.Sel.Name]
			logger := f.text(method.X)
			if ok && strings.Contains(strings.ToLower(logger), "log") {
				calls = append(calls, newLogCall(t, f, call, logger, message))
			}
		}
	}
	return calls
}

func newLogCall(t *testing.T, f *source, call *ast.CallExpr, logger string, message int) *logCall {
	t.Helper()
	c := &logCall{at: f.position(call), level: "0"}
	if message == messageIndex["Error"] {
		c.level = "error"
	} else if match := verbosity.FindStringSubmatch(logger); match != nil {
		c.level = match[1]
	}
	require.Greater(t, len(call.Args), message, c.at)
	var ok bool
	c.message, ok = stringLiteral(call.Args[message])
	assert.True(t, ok, "%s: the message is not a constant", c.at)
	for i, arg := range call.Args[message+1:] {
		key, ok := stringLiteral(arg)
		switch {
		case i%2 == 1: // a value
		case ok:
			c.keys = append(c.keys, key)
		default:
			assert.True(t, call.Ellipsis.IsValid(), "%s: a key is not a constant", c.at)
		}
	}
	return c
}

func stringLiteral(expr ast.Expr) (value string, ok bool) {
	literal, ok := expr.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

func TestLogIsDocumented(t *testing.T) {
	documented := map[string]string{}
	var keys []string
	for _, row := range readPage(t, operations).tableAfter(t, "## Log") {
		require.Len(t, row, 3, row)
		message := codes(row[0])
		require.Len(t, message, 1, row)
		require.NotContains(t, documented, message[0])
		documented[message[0]] = row[1]
		keys = append(keys, codes(row[2])...)
	}
	calls := logCalls(t)
	levels := map[string]string{}
	for _, c := range calls {
		switch c.message {
		case "Event occurred": // the caller passes the verbosity
			c.level = "as asked"
		case "Sent an event": // the recorder sets the verbosity of the logger elsewhere
			c.level = "4"
		}
		if level, ok := levels[c.message]; ok {
			assert.Equal(t, level, c.level, "%s: %q has two levels", c.at, c.message)
		}
		levels[c.message] = c.level
		for _, key := range c.keys {
			assert.Regexp(t, lowerCamel, key, c.at)
		}
	}
	assert.Equal(t, levels, documented)
	assert.Greater(t, len(calls), 20)

	var text strings.Builder
	for _, f := range sources(t, ".") {
		if !f.test {
			text.WriteString(read(t, f.path))
		}
	}
	for _, key := range keys {
		if lowerCamel.MatchString(key) && !slices.Contains([]string{"related", "list", "reason", "action"}, key) {
			assert.Contains(t, text.String(), strconv.Quote(key), "no log call has the key %s", key)
		}
	}
}
