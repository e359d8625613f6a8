package output

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/table"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/terminal"
	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
)

// columns are custom columns: the values of JSONPath expressions.
type columns struct {
	headers []string
	paths   []*jsonpath.JSONPath
	layout  *table.Layout
}

func parseColumns(spec string) (*columns, error) {
	c := &columns{}
	for part := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(part, ":")
		if !ok || header == "" {
			return nil, fmt.Errorf("custom column %q: want HEADER:JSONPATH, such as REASON:.reason", part)
		}
		if err := c.add(header, path); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parseColumnsFile parses a file for custom-columns-file: a line with headers, and a line with
// expressions.
func parseColumnsFile(file string) (*columns, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := text.Lines(string(content))
	if len(lines) != 2 || len(strings.Fields(lines[0])) != len(strings.Fields(lines[1])) {
		return nil, fmt.Errorf("custom columns in %q: want a line with headers and a line with as many JSONPath expressions", file)
	}
	c := &columns{}
	paths := strings.Fields(lines[1])
	for i, header := range strings.Fields(lines[0]) {
		if err := c.add(header, paths[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *columns) add(header, expression string) error {
	path, err := ParsePath(expression)
	if err != nil {
		return fmt.Errorf("custom column %q: %w", header, err)
	}
	c.headers, c.paths = append(c.headers, header), append(c.paths, path)
	return nil
}

// relaxed matches JSONPath expressions with or without braces and the first dot.
var relaxed = regexp.MustCompile(`^\{?\.?([^{}]+)\}?$`)

// ParsePath parses a JSONPath expression as kubectl does: x.y, .x.y, and {.x.y} are the same.
func ParsePath(expression string) (*jsonpath.JSONPath, error) {
	match := relaxed.FindStringSubmatch(expression)
	if match == nil {
		return nil, fmt.Errorf("JSONPath %q: want an expression such as .metadata.name", expression)
	}
	path := jsonpath.New("path").AllowMissingKeys(true)
	if err := path.Parse("{." + match[1] + "}"); err != nil {
		return nil, fmt.Errorf("JSONPath %q: %w", expression, err)
	}
	return path, nil
}

// Values returns the values of an expression in an object.
func Values(path *jsonpath.JSONPath, o *unstructured.Unstructured) ([]reflect.Value, error) {
	found, err := path.FindResults(o.Object)
	if err != nil {
		return nil, err
	}
	var values []reflect.Value
	for _, result := range found {
		values = append(values, result...)
	}
	return values, nil
}

func (c *columns) print(objects []unstructured.Unstructured, w io.Writer, headers bool) error {
	rows := make([][]table.Cell, len(objects))
	for i := range objects {
		for _, path := range c.paths {
			values, err := Values(path, &objects[i])
			if err != nil {
				return err
			}
			var cell []string
			for _, value := range values {
				cell = append(cell, fmt.Sprint(value.Interface()))
			}
			if len(cell) == 0 {
				cell = []string{"<none>"}
			}
			rows[i] = append(rows[i], table.Cell{Text: text.Clean(strings.Join(cell, ","))})
		}
	}
	if c.layout == nil {
		named := make([]table.Column, len(c.headers))
		for i, header := range c.headers {
			named[i].Name = header
		}
		c.layout = table.Fit(named, rows, terminal.Terminal{})
		if headers {
			if _, err := io.WriteString(w, c.layout.Header()); err != nil {
				return err
			}
		}
	}
	for _, row := range rows {
		if _, err := io.WriteString(w, c.layout.Line(row)); err != nil {
			return err
		}
	}
	return nil
}
