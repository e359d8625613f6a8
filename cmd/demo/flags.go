package main

import (
	"flag"
	"fmt"
	"io"
	"time"
)

const (
	defaultDuration = 20 * time.Second
	// minDuration is long enough for a heartbeat of every series.
	minDuration = heartbeatInterval + 4*time.Second
)

// options are the parsed command line.
type options struct {
	duration time.Duration
	keep     bool
	verbose  bool
}

// parseFlags parses the command line. It writes errors and the usage to errOut.
func parseFlags(args []string, errOut io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprint(errOut, "demo starts a real API server, runs controllers that record events there, and\n"+
			"shows how their Events change.\n\n")
		flags.PrintDefaults()
	}
	flags.DurationVar(&opts.duration, "duration", defaultDuration, "how long the controllers emit events")
	flags.BoolVar(&opts.keep, "keep", false, "keep the server running at the end, until Ctrl-C")
	flags.BoolVar(&opts.verbose, "v", false, "write the logs of the recorder and the server to standard error, and show lines instead of a table")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, usageError(flags, "unexpected argument %q", flags.Arg(0))
	}
	if opts.duration < minDuration {
		return options{}, usageError(flags, "-duration %v is too short for a heartbeat; the minimum is %v", opts.duration, minDuration)
	}
	return opts, nil
}

func usageError(flags *flag.FlagSet, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	fmt.Fprintln(flags.Output(), err)
	flags.Usage()
	return err
}
