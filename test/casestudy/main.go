// Command casestudy runs kube-scheduler with client-go's recorder and with the one of
// this repository, and writes the section of docs/case-study.md about it.
//
// # Usage
//
//	cd test && go run ./casestudy -case='30 Pods'
//
// A run replaces the results of its cases and recorders, so they can run on different
// days. With -page, the program only renders the page.
//
// # Guarantees
//
//   - Kubernetes comes from the module proxy, in a fixed version. Nothing of it is
//     committed.
//   - The section contains no figure that is not in the results.
//
// # Limitations
//
//   - kube-scheduler compiles for minutes, and all cases take an hour.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// config is the parsed command line.
type config struct {
	root      string // of this repository
	page      bool   // only render the page
	recorder  string // a part of the name of each recorder to run
	studyCase string // a part of the name of each case to run
}

// work returns the directory of the copy of Kubernetes, and of the data of the servers.
func (c config) work() string { return filepath.Join(c.root, "bin", "casestudy") }

func (c config) results() string {
	return filepath.Join(c.root, "docs", "case-study", "scheduler.json")
}

func main() {
	log.SetFlags(log.Ltime)
	var cfg config
	flag.StringVar(&cfg.root, "root", "..", "the `directory` of this repository")
	flag.BoolVar(&cfg.page, "page", false, "only render the page from the results")
	flag.StringVar(&cfg.recorder, "recorder", "", "run the recorders whose names contain this")
	flag.StringVar(&cfg.studyCase, "case", "", "run the cases whose names contain this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, cfg)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, cfg config) (err error) {
	if cfg.root, err = filepath.Abs(cfg.root); err != nil {
		return fmt.Errorf("casestudy: %w", err)
	}
	r, err := readResults(cfg.results())
	if err == nil && !cfg.page {
		err = os.MkdirAll(cfg.work(), 0o755)
		if err == nil {
			err = runCases(ctx, cfg, r)
		}
	}
	if err == nil {
		err = writePage(filepath.Join(cfg.root, "docs", "case-study.md"), r)
	}
	if err != nil {
		return fmt.Errorf("casestudy: %w", err)
	}
	return nil
}
