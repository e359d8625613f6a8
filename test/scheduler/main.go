// Command scheduler runs the kube-scheduler of Kubernetes with two recorders of events,
// client-go's and the one of this repository, and compares what they cost. Each run has a
// fresh API server with etcd, Pods that do not fit on any node, and nodes that change
// twice per second, so that the scheduler tries the Pods again.
//
//	go run . -scheduler ../../bin/kube-scheduler -results ../../docs/case-study/scheduler.json
//
// The results of a run replace those of the same run in the file. The program then writes
// the section about kube-scheduler in docs/case-study.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// config is the parsed command line.
type config struct {
	scheduler, controlplane string // programs
	results, root           string
	only                    *regexp.Regexp
	report                  bool
}

func main() {
	klog.SetLogger(klog.New(nil)) // of the clients
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the selected cases one after the other, and writes the results and the page.
func run(ctx context.Context, args []string, progress io.Writer) error {
	cfg, err := parseFlags(args, progress)
	if err != nil {
		return err
	}
	results, err := readResults(cfg.results)
	if err != nil {
		return err
	}
	if !cfg.report {
		if cfg.controlplane == "" {
			if cfg.controlplane, err = controlplane.Build(ctx, progress); err != nil {
				return err
			}
		}
		for _, c := range cases {
			if !cfg.only.MatchString(c.Name) {
				continue
			}
			measured, err := measureCase(ctx, cfg, c, progress)
			if err != nil {
				return err
			}
			results.Cores = runtime.NumCPU()
			results.replace(measured)
			if err := results.write(cfg.results); err != nil {
				return err
			}
		}
	}
	return writePage(cfg.root, results)
}

func parseFlags(args []string, output io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("scheduler", flag.ContinueOnError)
	fs.SetOutput(output)
	fs.StringVar(&cfg.scheduler, "scheduler", "../../bin/kube-scheduler", "the `program` in ./kube-scheduler")
	fs.StringVar(&cfg.controlplane, "controlplane", "", "the `program` in test/controlplane; if empty, build it")
	fs.StringVar(&cfg.results, "results", "../../docs/case-study/scheduler.json", "the `file` for the results")
	fs.StringVar(&cfg.root, "root", "../..", "the `directory` of the repository")
	fs.BoolVar(&cfg.report, "report", false, "run no case, and write the page from the last results")
	only := fs.String("only", "", "a regular `expression` that selects cases by name")
	if err := fs.Parse(args); err != nil {
		return config{}, fmt.Errorf("scheduler: %w", err)
	}
	if fs.NArg() > 0 {
		return config{}, fmt.Errorf("scheduler: unexpected argument %q", fs.Arg(0))
	}
	var err error
	if cfg.only, err = regexp.Compile(*only); err != nil {
		return config{}, fmt.Errorf("scheduler: -only: %w", err)
	}
	if cfg.scheduler, err = filepath.Abs(cfg.scheduler); err != nil {
		return config{}, fmt.Errorf("scheduler: -scheduler: %w", err)
	}
	return cfg, nil
}

// measureCase runs a case with each recorder.
func measureCase(ctx context.Context, cfg config, c testCase, progress io.Writer) ([]Result, error) {
	results := make([]Result, len(recorders))
	for i, recorder := range recorders {
		fmt.Fprintf(progress, "%s: %s\n", c.Name, recorder)
		var err error
		if results[i], err = measure(ctx, cfg, c, recorder); err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "%+v\n", results[i])
	}
	return results, nil
}
