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
	"regexp"
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

// core are the packages with which package events records: all that it imports, but that of the API groups. A page can name their constants, also unexported ones, and
// those of others.
var (
	core = []string{
		"events", "heartbeat", "internal/eventclient", "internal/eventtext", "internal/filter", "internal/legacyrecorder", "internal/reference",
		"internal/safelog", "internal/sanitize", "internal/schedule", "internal/tracker", "series",
	}
	others = []string{"cmd/eventsmigrate", "compat", "compat/record", "internal/legacybroadcaster", "query"}
)

var (
	defaults = tracker.Options{}.WithDefaults()
	window   = heartbeat.Window{Min: defaults.FinishAfter, Max: defaults.MaxWindow}
)

// windowAfter returns the window of a loop with a gap.
func windowAfter(gap time.Duration) time.Duration {
	var r heartbeat.Rhythm
	window.Observe(&r, gap, gap)
	return window.Of(r, gap)
}

// derived are values that are no constants. A duration is in nanoseconds.
var derived = map[string]float64{
	"min": 60e9, "s": 1e9, "ms": 1e6, "h": 3600e9, "KiB": 1 << 10,
	"defaults.Capacity":          float64(defaults.Capacity),
	"defaults.EventTTL":          float64(defaults.EventTTL),
	"defaults.HeartbeatInterval": float64(defaults.HeartbeatInterval),
	"defaults.FinishAfter":       float64(defaults.FinishAfter),
	"defaults.MaxWindow":         float64(defaults.MaxWindow),
	"window.After1000s":          float64(windowAfter(1000 * time.Second)),
	"window.After10min":          float64(windowAfter(10 * time.Minute)),
	"window.PerGap":              windowAfter(1000*time.Second).Seconds() / 1000,
	"tracker.MaxAnnotationBytes": float64(tracker.MaxAnnotationBytes), // from the API
	"stale":                      float64(defaults.HeartbeatInterval + series.FinishAfter + series.ClockSkew),
}

// sources type-checks packages of the root module. Of other modules it knows packages time and math, and ignores what
// does not type-check without them.
type sources struct {
	fset  *token.FileSet
	std   types.Importer
	all   map[string]*types.Package
	names map[token.Pos]bool // of constants that stand for a name, because of iota, or follow from others, or from units
}

// Import implements [types.Importer].
func (c *sources) Import(name string) (*types.Package, error) {
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

func (c *sources) findNames(file *ast.File) {
	for _, decl := range file.Decls {
		if decl, ok := decl.(*ast.GenDecl); ok && decl.Tok == token.CONST {
			isIota := false
			ast.Inspect(decl, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				isIota = isIota || ok && id.Name == "iota"
				return true
			})
			for _, spec := range decl.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, name := range spec.Names {
					c.names[name.Pos()] = isIota || i < len(spec.Values) && follows(spec.Values[i])
				}
			}
		}
	}
}

// follows reports whether the value of a constant follows from others, or has no number of its own.
func follows(value ast.Expr) bool {
	others, numbers := 0, 0
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name != "time" {
				others++
			}
			return false
		case *ast.Ident:
			if n.Name != "int64" {
				others++
			}
		case *ast.BasicLit:
			numbers++
		}
		return true
	})
	return others > 0 || numbers == 0 && !isUnit(value)
}

// isUnit reports whether an expression is one unit of time, such as an hour.
func isUnit(value ast.Expr) bool {
	_, ok := value.(*ast.SelectorExpr)
	return ok
}

// constants are a package with all constants, as package_name, and what is derived, and the numbers of the core, as
// package.name, with what the page says. A number is a time, a size, or a number that follows from no other.
var constants = sync.OnceValues(func() (facts *types.Package, numbers map[string]string) {
	c := &sources{token.NewFileSet(), nil, map[string]*types.Package{}, map[token.Pos]bool{}}
	c.std = importer.ForCompiler(c.fset, "source", nil)
	facts, numbers = types.NewPackage("facts", "facts"), map[string]string{}
	add := func(name string, value constant.Value) {
		facts.Scope().Insert(types.NewConst(token.NoPos, facts, strings.ReplaceAll(name, ".", "_"), types.Typ[types.UntypedFloat], constant.ToFloat(value)))
	}
	for name, value := range derived {
		add(name, constant.MakeFloat64(value))
	}
	for i, dir := range slices.Concat(core, others) {
		p, _ := c.Import(module + dir)
		for _, name := range p.Scope().Names() {
			found, ok := p.Scope().Lookup(name).(*types.Const)
			if !ok || found.Val().Kind() != constant.Int && found.Val().Kind() != constant.Float {
				continue
			}
			name = path.Base(dir) + "." + name
			add(name, found.Val())
			value, text := found.Val(), found.Val().String()
			number, _ := constant.Float64Val(constant.ToFloat(value))
			named, isNamed := found.Type().(*types.Named)
			isDuration := isNamed && named.Obj().Name() == "Duration"
			if isDuration {
				text = shortZeros.Replace(time.Duration(number).String())
			}
			if i < len(core) && !c.names[found.Pos()] && (!isNamed || isDuration) && math.Abs(number) < math.MaxInt64 { // beyond, it stands for never
				numbers[name] = text
			}
		}
	}
	return facts, numbers
})

var (
	shortZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")
	qualified  = regexp.MustCompile(`\b([a-z]\w*)\.(\w+)`)
)

// valueOf returns the value of an expression of constants and [derived] values, such as tracker.DefaultMaxWindow/min, as
// pages write numbers, without thousands separators. It rounds one that begins with "~".
func valueOf(expression string) (string, error) {
	facts, _ := constants()
	expression, isRounded := strings.CutPrefix(expression, "~")
	result, err := types.Eval(token.NewFileSet(), facts, token.NoPos, qualified.ReplaceAllString(expression, "${1}_$2"))
	if err != nil {
		return "", err
	}
	number, _ := constant.Float64Val(constant.ToFloat(result.Value))
	if isRounded {
		number = math.Round(number)
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", number), "0"), "."), nil
}

// The table of constants has each number of the core, its value, and why. To write the values, and to add and delete rows:
//
//	go test ./docs -run TestConstantsAreDocumented -update
func TestConstantsAreDocumented(t *testing.T) {
	const design, head = "docs/design.md", "| constant | value | of what, and why | halved; doubled |\n| --- | --- | --- | --- |\n"
	_, numbers := constants()
	assert.LessOrEqual(t, len(numbers), 35, "too many constants to keep in mind: delete one before you add one")
	before, table, ok := strings.Cut(read(t, design), head)
	require.True(t, ok, "no table of constants")
	table, after, _ := strings.Cut(table, "\n\n")
	left, rows := maps.Clone(numbers), []string{}
	for row := range strings.Lines(table) {
		cell, names, values := append(cells(strings.TrimSpace(row)), "", "")[:4], []string{}, []string{}
		assert.True(t, *update || cell[2] != "" && cell[3] != "", "why, and what breaks? %s", row)
		for _, name := range codes(cell[0]) {
			if value, ok := left[name]; ok {
				names, values = append(names, "`"+name+"`"), append(values, value)
				delete(left, name)
			}
		}
		if len(names) > 0 {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", strings.Join(names, ", "), strings.Join(values, ", "), cell[2], cell[3]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		rows = append(rows, fmt.Sprintf("| `%s` | %s |", name, left[name]))
	}
	want := strings.Join(rows, "\n")
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, design), []byte(before+head+want+"\n\n"+after), 0o600))
		return
	}
	assert.Equal(t, want, strings.TrimSpace(table), "run go test ./docs -run TestConstantsAreDocumented -update, and say why")
}
