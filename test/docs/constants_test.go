package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

const module = "github.com/eventseries/eventseries/"

// constantsIn are the packages whose constants, also unexported ones, a page can name.
var constantsIn = []string{
	"cmd/eventsmigrate", "compat", "compat/record", "events", "heartbeat", "internal/eventclient", "internal/legacyrecorder", "internal/sanitize", "internal/schedule", "internal/tracker", "query", "series",
}

var defaults = tracker.Options{}.WithDefaults()

// derived are values that are no constants.
var derived = map[string]constant.Value{
	"min": duration(time.Minute), "s": duration(time.Second), "ms": duration(time.Millisecond), "h": duration(time.Hour), "KiB": constant.MakeInt64(1 << 10),
	"defaults.Capacity":          constant.MakeInt64(int64(defaults.Capacity)),
	"defaults.EventTTL":          duration(defaults.EventTTL),
	"defaults.HeartbeatInterval": duration(defaults.HeartbeatInterval),
	"defaults.FinishAfter":       duration(defaults.FinishAfter),
	"defaults.MaxWindow":         duration(defaults.MaxWindow),
	"window.After1000s":          windowAfter(1000 * time.Second),
	"window.After10min":          windowAfter(10 * time.Minute),
	"window.PerGap":              constant.MakeFloat64(float64(window.For(1000*time.Second)) / float64(1000*time.Second)),
	"stale":                      duration(defaults.HeartbeatInterval + series.FinishAfter + series.ClockSkew),
}

var window = heartbeat.Window{Min: defaults.FinishAfter, Max: defaults.MaxWindow}

func windowAfter(gap time.Duration) constant.Value { return duration(window.For(gap)) }

func duration(d time.Duration) constant.Value { return constant.MakeInt64(int64(d)) }

// code type-checks packages of the root module when somebody asks for one of their constants. Of
// other modules it knows package time only, and ignores what does not type-check without them.
type checked struct {
	fset  *token.FileSet
	std   types.Importer
	all   map[string]*types.Package
	names map[token.Pos]bool // of constants that are numbered with iota
}

var constants = sync.OnceValue(func() *checked {
	fset := token.NewFileSet()
	return &checked{fset, importer.ForCompiler(fset, "source", nil), map[string]*types.Package{}, map[token.Pos]bool{}}
})

// Import implements [types.Importer].
func (c *checked) Import(name string) (*types.Package, error) {
	dir, ours := strings.CutPrefix(name, module)
	switch {
	case name == "time" || name == "math":
		return c.std.Import(name)
	case c.all[name] != nil:
	case ours:
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		var files []*ast.File
		for _, file := range paths {
			if !strings.HasSuffix(file, "_test.go") {
				parsed, err := parser.ParseFile(c.fset, file, nil, parser.SkipObjectResolution)
				if err != nil {
					return nil, err
				}
				files = append(files, parsed)
				c.findNames(parsed)
			}
		}
		config := types.Config{Importer: c, Error: func(error) {}, IgnoreFuncBodies: true}
		c.all[name], _ = config.Check(name, c.fset, files, nil)
	default:
		c.all[name] = types.NewPackage(name, path.Base(name))
		c.all[name].MarkComplete()
	}
	return c.all[name], nil
}

// findNames finds constants that are names, and no numbers: the value is a position in a list.
func (c *checked) findNames(file *ast.File) {
	for _, decl := range file.Decls {
		if decl, ok := decl.(*ast.GenDecl); ok && decl.Tok == token.CONST {
			isIota := false
			ast.Inspect(decl, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				isIota = isIota || ok && id.Name == "iota"
				return true
			})
			for _, spec := range decl.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					c.names[name.Pos()] = isIota
				}
			}
		}
	}
}

// evaluate returns the value of an expression of constants and [derived] values, such as
// tracker.DefaultMaxWindow/min.
func evaluate(e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.ParenExpr:
		return evaluate(e.X)
	case *ast.BinaryExpr:
		x, err := evaluate(e.X)
		if err != nil {
			return nil, err
		}
		y, err := evaluate(e.Y)
		if err != nil {
			return nil, err
		}
		return constant.BinaryOp(constant.ToFloat(x), e.Op, constant.ToFloat(y)), nil
	case *ast.Ident, *ast.SelectorExpr:
		name := types.ExprString(e)
		if value, ok := derived[name]; ok {
			return value, nil
		}
		dir, name, _ := strings.Cut(name, ".")
		i := slices.IndexFunc(constantsIn, func(p string) bool { return path.Base(p) == dir })
		if i < 0 {
			return nil, fmt.Errorf("unknown package %s: see constantsIn", dir)
		}
		p, err := constants().Import(module + constantsIn[i])
		if err != nil {
			return nil, err
		}
		if found, ok := p.Scope().Lookup(name).(*types.Const); ok && found.Val().Kind() != constant.Unknown {
			return found.Val(), nil
		}
		return nil, fmt.Errorf("no constant %s.%s", dir, name)
	}
	return nil, fmt.Errorf("cannot evaluate %s", types.ExprString(e))
}

// valueOf returns the value of an expression, as pages write numbers, without thousands separators.
func valueOf(expression string) (string, error) {
	e, err := parser.ParseExpr(expression)
	if err != nil {
		return "", err
	}
	value, err := evaluate(e)
	if err != nil {
		return "", err
	}
	number, _ := constant.Float64Val(constant.ToFloat(value))
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", number), "0"), "."), nil
}

func TestValueOf(t *testing.T) {
	for expression, want := range map[string]string{
		"tracker.DefaultMaxWindow/min": "36", "schedule.pace/s": "0.5", "2*(schedule.later+min)/s": "720", "sanitize.maxName": "", "series.None": "", "no.Such": "", "1 +": "",
		"window.PerGap": "2.1",
	} {
		got, err := valueOf(expression)
		assert.Equal(t, want, got, expression)
		assert.Equal(t, want == "", err != nil, expression)
	}
}

// core are the packages that package events imports.
var core = []string{"events", "heartbeat", "internal/eventclient", "internal/eventtext", "internal/filter", "internal/legacyrecorder", "internal/reference",
	"internal/safelog", "internal/sanitize", "internal/schedule", "internal/tracker", "series"}

var shortZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// numbersOfCore returns the constants of the core that are a time, a size, or a number, as package.name, with their values.
// Limits of the API, which have their names, are of other modules and unknown.
func numbersOfCore(t *testing.T) map[string]string {
	t.Helper()
	numbers := map[string]string{}
	for _, dir := range core {
		p, err := constants().Import(module + dir)
		require.NoError(t, err)
		for _, name := range p.Scope().Names() {
			c, ok := p.Scope().Lookup(name).(*types.Const)
			if !ok || constants().names[c.Pos()] || c.Val().Kind() != constant.Int && c.Val().Kind() != constant.Float {
				continue
			}
			value := c.Val().String()
			if named, ok := c.Type().(*types.Named); ok {
				d, _ := constant.Int64Val(c.Val())
				if value = shortZeros.Replace(time.Duration(d).String()); named.Obj().Name() != "Duration" {
					continue
				}
			}
			if f, _ := constant.Float64Val(constant.ToFloat(c.Val())); math.Abs(f) < math.MaxInt64 { // otherwise it stands for a time that never comes
				numbers[path.Base(dir)+"."+name] = value
			}
		}
	}
	return numbers
}

// The table of constants has each number of the core, its value, and why. To write the values, and to add and delete rows:
//
//	go test ./docs -run TestConstantsAreDocumented -update
func TestConstantsAreDocumented(t *testing.T) {
	const design, head = "docs/design.md", "| constant | value | of what, and why | halved; doubled |\n| --- | --- | --- | --- |\n"
	before, table, ok := strings.Cut(read(t, design), head)
	require.True(t, ok, "no table of constants")
	table, after, _ := strings.Cut(table, "\n\n")
	numbers, rows := numbersOfCore(t), []string{}
	assert.LessOrEqual(t, len(numbers), 96, "who shall keep more of them in the head?")
	for row := range strings.Lines(table) {
		cell, names, values := cells(strings.TrimSpace(row)), []string{}, []string{}
		require.Len(t, cell, 4, row)
		for _, name := range codes(cell[0]) {
			if value, ok := numbers[name]; ok {
				names, values = append(names, "`"+name+"`"), append(values, value)
				delete(numbers, name)
			}
		}
		assert.True(t, cell[2] != "" && cell[3] != "", "why, and what breaks? %s", row)
		if len(names) > 0 {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", strings.Join(names, ", "), strings.Join(values, ", "), cell[2], cell[3]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |  |  |", name, numbers[name]))
	}
	want := strings.Join(rows, "\n")
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, design), []byte(before+head+want+"\n\n"+after), 0o600))
		return
	}
	assert.Equal(t, want, strings.TrimSpace(table), "run go test ./docs -run TestConstantsAreDocumented -update, and say why")
}
