// Command casestudy moves programs from the legacy recorder with eventsmigrate, runs
// their tests before and after, and compares the Events of the stock and the moved
// program. It also runs kustomize-controller, the kubelet, and kube-scheduler with several
// recorders. It writes docs/case-study.md.
//
// # Usage
//
//	make casestudy-migrate
//	make casestudy-migrate CASESTUDY_FLAGS='-steps=story -story=3m'
//
// A step replaces its part of the results, so the steps can run on different days:
//
//   - move copies a program from the module cache, and runs eventsmigrate on the copy
//     twice.
//   - compile type-checks what depends on the changed packages, with its tests.
//   - test runs the unit tests of the changed packages, before and after.
//   - build compiles the stock and the moved program. It also adds what a person must add
//     to the moved operators so that they shut down their broadcasters.
//   - story runs each version with an API server of its own.
//   - flux runs kustomize-controller with several recorders, one after the other. Only
//     make casestudy-flux runs it.
//   - kubelet does the same with the kubelet, and scheduler with kube-scheduler. Only make
//     casestudy-kubelet and make casestudy-scheduler run them.
//   - page writes the page from the results. It runs after the other steps, too.
//
// # Guarantees
//
//   - The programs come from the module proxy, in fixed versions. Nothing of them is
//     committed, except for figures and lines of the report.
//   - The page contains no figure that is not in the results.
//
// # Limitations
//
//   - A run compiles Kubernetes and its tests, which takes an hour on two cores and 10 GB
//     of build cache.
//   - The stories have no kubelet and no scheduler, and those of the operators no
//     kube-controller-manager. This program plays their parts.
//   - The stories need Linux: sealed-secrets runs in a mount namespace of its own. While
//     mpi-operator runs, it listens on port 8080 of all interfaces.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"
)

// The steps that run by default, and those that each run a program with several recorders.
var (
	steps     = []string{"move", "compile", "test", "build", "story", "page"}
	moreSteps = []string{"flux", "kubelet", "scheduler"}
)

// config is the parsed command line.
type config struct {
	root     string // of this repository
	work     string // the copies of the programs, and the data of the servers
	results  string
	docs     string
	steps    []string
	programs []string
	story    time.Duration
	// of the steps that run a program with several recorders
	recorder, studyCase   string
	kustomizations, scale int
}

// resultsOf returns the file with the results of a step that runs a program with several
// recorders.
func (c config) resultsOf(step string) string {
	return filepath.Join(filepath.Dir(c.results), step+".json")
}

func main() {
	log.SetFlags(log.Ltime)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	cfg, err := parse()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return runSteps(ctx, cfg)
}

func parse() (cfg config, err error) {
	var stepList, programList string
	flag.StringVar(&cfg.root, "root", "..", "the `directory` of this repository")
	flag.StringVar(&stepList, "steps", strings.Join(steps, ","), "the steps to run")
	flag.StringVar(&programList, "programs", "", "the programs to move, by `module`; if empty, all")
	flag.StringVar(&cfg.results, "results", "", "the `file` with the results; if empty, docs/case-study/migrate.json")
	flag.DurationVar(&cfg.story, "story", 0, "how long each story takes; if zero, 20 minutes for Kubernetes and 90 seconds for the operators")
	flag.IntVar(&cfg.kustomizations, "kustomizations", 1000, "how many Kustomizations the step flux creates")
	flag.IntVar(&cfg.scale, "scale", 6, "how much faster time passes in the step flux")
	flag.StringVar(&cfg.recorder, "recorder", "", "run the steps flux, kubelet, and scheduler with the recorders whose names contain this")
	flag.StringVar(&cfg.studyCase, "case", "", "run the step scheduler with the cases whose names contain this")
	flag.Parse()
	if cfg.scale < 1 {
		return cfg, fmt.Errorf("casestudy: -scale=%d is less than 1", cfg.scale)
	}
	if cfg.root, err = filepath.Abs(cfg.root); err != nil {
		return cfg, err
	}
	// The build cache depends on the path of the copies.
	bin, err := filepath.EvalSymlinks(filepath.Join(cfg.root, "bin"))
	if err != nil {
		return cfg, err
	}
	cfg.work = filepath.Join(bin, "casestudy")
	cfg.docs = filepath.Join(cfg.root, "docs", "case-study.md")
	if cfg.results == "" {
		cfg.results = filepath.Join(cfg.root, "docs", "case-study", "migrate.json")
	}
	cfg.steps = strings.Split(stepList, ",")
	for _, s := range cfg.steps {
		if all := slices.Concat(steps, moreSteps); !slices.Contains(all, s) {
			return cfg, fmt.Errorf("casestudy: unknown step %q: want %s", s, strings.Join(all, ","))
		}
	}
	for _, p := range programs {
		cfg.programs = append(cfg.programs, p.Module)
	}
	if programList != "" {
		for _, module := range strings.Split(programList, ",") {
			if !slices.Contains(cfg.programs, module) {
				return cfg, fmt.Errorf("casestudy: unknown program %q: want %s", module, strings.Join(cfg.programs, ","))
			}
		}
		cfg.programs = strings.Split(programList, ",")
	}
	return cfg, nil
}

// runSteps runs the steps and saves the results after each of them.
func runSteps(ctx context.Context, cfg config) error {
	results, err := readResults[results](cfg.results)
	if err != nil {
		return err
	}
	has := func(step string) bool { return slices.Contains(cfg.steps, step) }
	save := func(step string, err error) error {
		if err != nil {
			return fmt.Errorf("casestudy: %s: %w", step, err)
		}
		log.Printf("%s: done", step)
		results.Machine = machine()
		return writeResults(cfg.results, results)
	}
	if has("move") || has("story") || slices.ContainsFunc(moreSteps, has) {
		if err := os.MkdirAll(cfg.work, 0o755); err != nil {
			return fmt.Errorf("casestudy: %w", err)
		}
	}
	for _, p := range programs {
		if !slices.Contains(cfg.programs, p.Module) {
			continue
		}
		m := &mover{program: p, root: cfg.root, work: cfg.work, duration: cmp.Or(cfg.story, p.Duration), results: results.of(p)}
		for _, step := range []struct {
			name string
			run  func(context.Context) error
		}{{"move", m.move}, {"compile", m.compile}, {"test", m.test}, {"build", m.build}, {"story", m.tell}} {
			if has(step.name) {
				if err := save(p.Module+": "+step.name, step.run(ctx)); err != nil {
					return err
				}
			}
		}
	}
	page, err := render(results)
	if err != nil {
		return err
	}
	if err := replaceSection(cfg.docs, heading, page); err != nil {
		return err
	}
	return errors.Join(
		runStep(ctx, cfg, "flux", flux, fluxHeading, fluxTemplate),
		runStep(ctx, cfg, "kubelet", kubelet, kubeletHeading, kubeletTemplate),
		runStep(ctx, cfg, "scheduler", scheduler, schedulerHeading, schedulerTemplate),
	)
}

// runStep runs a program with several recorders if its step is selected, and writes its
// section.
func runStep[T any](ctx context.Context, cfg config, step string, run func(context.Context, config, *T) error, heading string, section *template.Template) error {
	results, err := readResults[T](cfg.resultsOf(step))
	if err != nil {
		return err
	}
	if slices.Contains(cfg.steps, step) {
		if err := run(ctx, cfg, results); err != nil {
			return fmt.Errorf("casestudy: %s: %w", step, err)
		}
	}
	text, err := renderRuns(section, results)
	if err != nil {
		return err
	}
	return replaceSection(cfg.docs, heading, text)
}
