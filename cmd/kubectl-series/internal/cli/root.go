package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/cmd/kubectl-series/internal/text"
	"github.com/eventseries/eventseries/query"
)

// Completion is the name under which kubectl runs the program to complete its arguments.
const Completion = "kubectl_complete-series"

// Main runs the program with its arguments, and returns the exit code.
func Main(ctx context.Context, args []string, streams genericiooptions.IOStreams) int {
	arguments := args[1:]
	root := newRoot(streams, arguments)
	if strings.TrimSuffix(filepath.Base(args[0]), ".exe") == Completion {
		arguments = append([]string{cobra.ShellCompRequestCmd}, arguments...)
	}
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	if err == nil || errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return 0
	}
	fmt.Fprintf(streams.ErrOut, "error: %s%s\n", message(err), advice(err))
	return 1
}

// environment is what all commands share.
type environment struct {
	genericiooptions.IOStreams
	source
	called    string // the command, to continue it
	flags     *genericclioptions.ConfigFlags
	colors    string
	times     string // one of timeFormats
	chunkSize int64
}

func newRoot(streams genericiooptions.IOStreams, arguments []string) *cobra.Command {
	called := "kubectl series"
	for _, argument := range arguments {
		called += " " + quote(argument)
	}
	e := &environment{IOStreams: streams, called: called, flags: genericclioptions.NewConfigFlags(true).WithWarningPrinter(streams)}
	root := newList(e)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl series"}
	root.Version = version()
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.HiddenDefaultCmd = true // it would complete kubectl-series
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %q)", err, c.CommandPath()+" --help")
	})
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)

	flags := root.PersistentFlags()
	e.flags.AddFlags(flags)
	flags.StringVar(&e.colors, "color", "auto", `Use colors: "auto" in a terminal unless NO_COLOR is set, "always", or "never"`)
	flags.Int64Var(&e.chunkSize, "chunk-size", 500, "Return large lists in chunks rather than all at once. Pass 0 to disable.")
	e.addTo(flags)
	flags.StringVar(&e.times, "time", "relative", `How to show times: "relative", "local", or "utc". Where there is no room for both, relative times are ages`)
	verbosity := addVerbosity(flags)
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		// Libraries log errors that the commands return as well.
		if verbosity.Value.String() == "0" {
			klog.SetLogger(logr.Discard())
		}
		if err := oneOf("--time", e.times, timeFormats...); err != nil {
			return err
		}
		if err := oneOf("--color", e.colors, "auto", "always", "never"); err != nil {
			return err
		}
		return e.load()
	}
	named := newList(e) // for those who expect a verb
	named.Use, named.Hidden = "list [KIND/NAME... | KIND [NAME...]]", true
	root.AddCommand(named, newTimeline(e), newTop(e), newDescribe(e))
	completeFlags(e, root)
	return root
}

func addVerbosity(flags *pflag.FlagSet) *pflag.Flag {
	all := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(all)
	v := pflag.PFlagFromGoFlag(all.Lookup("v"))
	v.Usage = "Number for the log level verbosity: 6 shows requests, 8 shows their content"
	flags.AddFlag(v)
	return v
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func oneOf(flag, value string, valid ...string) error {
	for _, v := range valid {
		if value == v {
			return nil
		}
	}
	return fmt.Errorf("%s %q: want one of %s", flag, value, strings.Join(valid, ", "))
}

// warn prints on one line why something is incomplete.
func (e *environment) warn(what string, err error) {
	fmt.Fprintf(e.ErrOut, "Warning: %s: %s\n", text.Clean(what), message(err))
}

// warnOfEvents warns of an error that makes a list or a watch of Events incomplete.
func (e *environment) warnOfEvents(err error) { e.warn(leftOut(err), err) }

func leftOut(err error) string {
	if denied := (*query.PermissionError)(nil); errors.As(err, &denied) {
		return "Events of other namespaces are missing"
	}
	return "Events are missing or late"
}
