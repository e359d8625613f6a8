package docs

import (
	"cmp"
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
type logCall struct{ at, message, level string }

var (
	logMethod  = regexp.MustCompile(`(?s)(?i:log)(?:.*\.V\((\d+)\))?.*\.(Info|Error)$`)
	lowerCamel = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
)

// logCalls returns the calls of loggers in the packages that users' programs include: the
// calls of Info and Error whose receiver contains "log". Their keys are in lower camel case.
func logCalls(t *testing.T) (calls []logCall) {
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
			match := logMethod.FindStringSubmatch(f.text(call.Fun))
			if match == nil {
				continue
			}
			c := logCall{at: f.fset.Position(call.Pos()).String(), level: cmp.Or(match[1], "0")}
			args := call.Args
			if match[2] == "Error" {
				c.level, args = "error", args[1:]
			}
			c.message = stringLiteral(args[0])
			assert.NotEmpty(t, c.message, "%s: the message is not a constant", c.at)
			for i := 1; i < len(args) && !call.Ellipsis.IsValid(); i += 2 {
				assert.Regexp(t, lowerCamel, stringLiteral(args[i]), "%s: a key", c.at)
			}
			calls = append(calls, c)
		}
	}
	return calls
}

// stringLiteral returns the value of a constant, or "" if expr is not one.
func stringLiteral(expr ast.Expr) (value string) {
	if literal, ok := expr.(*ast.BasicLit); ok {
		value, _ = strconv.Unquote(literal.Value)
	}
	return value
}

func TestLogIsDocumented(t *testing.T) {
	documented := map[string]string{}
	var keys []string
	for _, row := range readPage(t, operations).tableAfter(t, "## Log") {
		require.Len(t, row, 3, row)
		message := strings.Join(codes(row[0]), " and ")
		require.NotContains(t, documented, message)
		documented[message] = row[1]
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
