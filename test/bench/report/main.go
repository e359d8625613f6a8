// Command report makes docs/benchmarks.md and its pictures of the results of a run of
// the benchmarks. The same results give the same files.
//
//	go run ./bench/report -results ../docs/benchmarks/results.json -docs ../docs
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/eventseries/eventseries/test/bench"
)

func main() {
	results := flag.String("results", "../docs/benchmarks/results.json", "the file with the results")
	docs := flag.String("docs", "../docs", "the directory to write benchmarks.md and benchmarks/*.svg to")
	flag.Parse()
	if err := run(*results, *docs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(resultsFile, docs string) error {
	results, err := bench.ReadResults(resultsFile)
	if err != nil {
		return err
	}
	files, err := report(&results)
	if err != nil {
		return fmt.Errorf("%s: %w", resultsFile, err)
	}
	for name, data := range files {
		file := filepath.Join(docs, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// report returns the files of the documentation, by their paths in it.
func report(results *bench.Results) (map[string][]byte, error) {
	files, err := pictures(results)
	if err != nil {
		return nil, err
	}
	page, err := page(results)
	if err != nil {
		return nil, err
	}
	files["benchmarks.md"] = page
	return files, nil
}
