package docs

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const operations = "docs/operations.md"

// logCall is a call that writes a line of the log.
type logCall struct {
	at, message, level string
	keys               []string
}

// asAsked is the level of lines for which somebody gives the logger with its
// verbosity.
const asAsked = "as asked"

// logCalls returns the calls that write a line of the log in what becomes part of
// users' programs. A logger is whatever is called so.
func logCalls(t *testing.T) (calls []logCall) {
	t.Helper()
	for _, f := range sources(t, ".") {
		switch {
		case f.test, f.pkg == "main", strings.HasPrefix(f.path, "internal/safelog/"), strings.HasPrefix(f.path, "internal/controlplane/"):
			continue
		}
		ast.Inspect(f.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fun.Sel.Name != "Info" && fun.Sel.Name != "Error" {
				return true
			}
			c := logCall{at: f.at(call.Pos())}
			receiver := f.text(fun.X)
			if !strings.Contains(strings.ToLower(receiver), "log") {
				return true
			}
			message := 0
			if fun.Sel.Name == "Error" {
				c.level, message = "error", 1
			} else if verbosity := verbosityOf.FindStringSubmatch(receiver); verbosity != nil {
				c.level = verbosity[1]
			} else {
				c.level = "0"
			}
			if !assert.Greater(t, len(call.Args), message, c.at) {
				return true
			}
			literal, ok := call.Args[message].(*ast.BasicLit)
			if !assert.True(t, ok && literal.Kind == token.STRING, "%s: the message is no constant", c.at) {
				return true
			}
			var err error
			c.message, err = strconv.Unquote(literal.Value)
			require.NoError(t, err)
			for i, arg := range call.Args[message+1:] {
				if literal, ok := arg.(*ast.BasicLit); ok && i%2 == 0 {
					key, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					c.keys = append(c.keys, key)
				} else if i%2 == 0 {
					assert.True(t, call.Ellipsis.IsValid(), "%s: a key is no constant", c.at)
				}
			}
			calls = append(calls, c)
			return true
		})
	}
	return calls
}

var (
	verbosityOf = regexp.MustCompile(`\.V\((\d+)\)`)
	lowerCamel  = regexp.MustCompile(`^[a-z][a-zA-Z]*$`)
)

// The table of operations.md has every message that there is, with its level, and no
// other. Keys are as those of Kubernetes.
func TestLogIsDocumented(t *testing.T) {
	documented := map[string]string{}
	for _, row := range readPage(t, operations).tableAfter(t, "## Log") {
		require.Len(t, row, 3, row)
		message := codes(row[0])
		require.Len(t, message, 1, row)
		require.NotContains(t, documented, message[0])
		documented[message[0]] = row[1]
	}
	calls := logCalls(t)
	found := map[string]string{}
	for _, c := range calls {
		level := c.level
		switch c.message {
		case "Event occurred":
			level = asAsked
		case "Sent an event":
			// Its logger asks whether it is enabled first.
			level = "4"
		}
		if before, ok := found[c.message]; ok {
			assert.Equal(t, before, level, "%s: %q has two levels", c.at, c.message)
		}
		found[c.message] = level
		for _, key := range c.keys {
			assert.Regexp(t, lowerCamel, key, c.at)
		}
	}
	assert.Equal(t, found, documented)
	assert.Greater(t, len(calls), 20)
}

// What the lines of the log say beside the message is named as it is in the page.
func TestKeysOfTheLogAreThere(t *testing.T) {
	text := []string{}
	for _, f := range sources(t, ".") {
		if !f.test {
			text = append(text, read(t, f.path))
		}
	}
	all := strings.Join(text, "\n")
	for _, row := range readPage(t, operations).tableAfter(t, "## Log") {
		for _, key := range codes(row[2]) {
			if lowerCamel.MatchString(key) && !slices.Contains([]string{"related", "list", "reason", "action"}, key) {
				assert.Contains(t, all, strconv.Quote(key), "no line has the key %s", key)
			}
		}
	}
}
