package main

import (
	"flag"
	"fmt"
	"io"
	"time"
)

const (
	defaultDuration = 20 * time.Second
	// minDuration leaves time for a heartbeat of a series that begins late.
	minDuration = heartbeatInterval + 4*time.Second
)

// options are what the command line says.
type options struct {
	duration time.Duration
	keep     bool
	verbose  bool
}

// parseFlags reads the command line. What is wrong with it is written to errOut,
// with the usage.
func parseFlags(args []string, errOut io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprint(errOut, "demo runs some controllers that record events on a real API server, which it\n"+
			"brings with it, and shows what becomes of the Events there.\n\n")
		flags.PrintDefaults()
	}
	flags.DurationVar(&opts.duration, "duration", defaultDuration, "for how long the controllers emit events")
	flags.BoolVar(&opts.keep, "keep", false, "leave the server running at the end, until Ctrl-C, to look at it with kubectl")
	flags.BoolVar(&opts.verbose, "v", false, "log what the recorder and the server say to standard error, and show lines instead of a table")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, usageError(flags, "unexpected argument %q", flags.Arg(0))
	}
	if opts.duration < minDuration {
		return options{}, usageError(flags, "-duration %v is too short for a heartbeat: give it %v at least", opts.duration, minDuration)
	}
	return opts, nil
}

func usageError(flags *flag.FlagSet, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	fmt.Fprintln(flags.Output(), err)
	flags.Usage()
	return err
}
