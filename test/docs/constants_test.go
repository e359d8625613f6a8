package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
	fset *token.FileSet
	std  types.Importer
	all  map[string]*types.Package
}

var constants = sync.OnceValue(func() *checked {
	fset := token.NewFileSet()
	return &checked{fset, importer.ForCompiler(fset, "source", nil), map[string]*types.Package{}}
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
