package output

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/eventseries/eventseries/query"
)

// Formats returns the values of the flag --output that [New] accepts. An argument follows
// those that end with "=".
func Formats() []string {
	return []string{
		"json", "yaml", "kyaml", "name", "jsonpath=", "jsonpath-as-json=", "jsonpath-file=",
		"go-template=", "go-template-file=", "custom-columns=", "custom-columns-file=",
	}
}

// Printer prints series in one format.
type Printer struct {
	format  string
	printer printers.ResourcePrinter // nil for columns and YAML
	printed bool                     // a document of YAML
	columns *columns
	headers bool
}

// Options are the flags of a printer.
type Options struct {
	NoHeaders bool
	// Others are the formats that the caller prints itself, for the error.
	Others []string
	// StrictTemplates fails for fields that an object does not have.
	StrictTemplates bool
}

// New returns the printer of a format. The error says what is wrong and which formats are
// valid.
func New(format string, o Options) (*Printer, error) {
	name, argument, hasArgument := strings.Cut(format, "=")
	p := &Printer{format: name, headers: !o.NoHeaders}
	if (hasArgument || !slices.Contains(Formats(), name)) && !slices.Contains(Formats(), name+"=") {
		return nil, fmt.Errorf("output format %q: want one of %s", format, strings.Join(append(o.Others, Formats()...), ", "))
	}
	if slices.Contains(Formats(), name+"=") && argument == "" {
		return nil, fmt.Errorf("output format %q: want %s=…", format, name)
	}
	var err error
	switch {
	case name == "custom-columns":
		p.columns, err = parseColumns(argument)
	case name == "custom-columns-file":
		p.columns, err = parseColumnsFile(argument)
	case strings.HasPrefix(name, "jsonpath"):
		flags := genericclioptions.NewJSONPathPrintFlags(argument, !o.StrictTemplates)
		p.printer, err = flags.ToPrinter(name)
	case strings.HasPrefix(name, "go-template"):
		flags := genericclioptions.NewGoTemplatePrintFlags()
		allow := !o.StrictTemplates
		flags.TemplateArgument, flags.AllowMissingKeys = &argument, &allow
		p.printer, err = flags.ToPrinter(name)
	case name == "name":
		p.printer = &printers.NamePrinter{}
	case name == "yaml": // see YAML
	default:
		flags := genericclioptions.NewJSONYamlPrintFlags()
		flags.ShowManagedFields = true // the reader has left them out unless they are wanted
		p.printer, err = flags.ToPrinter(name)
	}
	if err != nil {
		return nil, fmt.Errorf("output format %q: %w", format, err)
	}
	return p, nil
}

// PrintItem prints one series, such as one of a watch.
func (p *Printer) PrintItem(w io.Writer, item *query.Item) error {
	switch {
	case p.columns != nil:
		return p.columns.print([]unstructured.Unstructured{*Object(item)}, w, p.headers)
	case p.format == "name":
		return p.printer.PrintObj(event(item), w)
	default:
		return p.print(w, p.object(item))
	}
}

// object returns what a format prints of a series.
func (p *Printer) object(item *query.Item) runtime.Object {
	if !p.isTemplate() {
		return newObject(item)
	}
	o := Object(item)
	printable(o.Object)
	return o
}

// print prints an object.
func (p *Printer) print(w io.Writer, object runtime.Object) error {
	if p.format == "yaml" {
		data, err := YAML(object)
		if err != nil {
			return err
		}
		if p.printed {
			data = append([]byte("---\n"), data...)
		}
		p.printed = true
		_, err = w.Write(data)
		return err
	}
	if p.isTemplate() {
		return p.printer.PrintObj(object, w)
	}
	if p.format == "kyaml" { // whose printer accepts no control characters
		data, err := YAML(object)
		if err != nil {
			return err
		}
		object = &runtime.Unknown{Raw: data}
	}
	var b bytes.Buffer
	if err := p.printer.PrintObj(object, &b); err != nil {
		return err
	}
	_, err := w.Write(escape(b.Bytes(), p.format == "kyaml"))
	return err
}

// isTemplate reports whether the format prints values as they are.
func (p *Printer) isTemplate() bool {
	return strings.HasPrefix(p.format, "jsonpath") || strings.HasPrefix(p.format, "go-template")
}

// PrintChange prints a change of a watch with its type, as kubectl does with
// --output-watch-events. Columns have no type.
func (p *Printer) PrintChange(w io.Writer, change string, item *query.Item) error {
	if p.columns != nil || p.format == "name" {
		return p.PrintItem(w, item)
	}
	return p.print(w, &metav1.WatchEvent{Type: change, Object: runtime.RawExtension{Object: p.object(item)}})
}

// PrintList prints a list.
func (p *Printer) PrintList(w io.Writer, items iter.Seq2[*query.Item, error]) error {
	buffered := bufio.NewWriter(w)
	var err error
	switch p.format {
	case "json":
		err = printJSON(buffered, items)
	case "name":
		for item, failed := range items {
			if err = failed; err == nil {
				err = p.PrintItem(buffered, item)
			}
			if err != nil {
				break
			}
		}
	default:
		var objects []unstructured.Unstructured
		for item, err := range items {
			if err != nil {
				return err
			}
			o := Object(item)
			if p.isTemplate() {
				printable(o.Object)
			}
			objects = append(objects, *o)
		}
		if p.columns != nil {
			err = p.columns.print(objects, buffered, p.headers)
		} else {
			err = p.print(buffered, newList(objects))
		}
	}
	if err != nil {
		return err
	}
	return buffered.Flush()
}

// printJSON prints a list as the JSON printer of cli-runtime does, without keeping it in
// memory.
func printJSON(w *bufio.Writer, items iter.Seq2[*query.Item, error]) error {
	fmt.Fprintf(w, "{\n    \"apiVersion\": %q,\n    \"kind\": \"SeriesList\",\n    \"items\": [", GroupVersion)
	separator, end := "\n        ", ""
	for item, err := range items {
		if err != nil {
			return err
		}
		data, err := JSON(newObject(item), "        ", "    ")
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s%s", separator, data)
		separator, end = ",\n        ", "\n    "
	}
	_, err := fmt.Fprintf(w, "%s]\n}\n", end)
	return err
}
