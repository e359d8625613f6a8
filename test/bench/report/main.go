// Command report generates docs/benchmarks.md and its pictures from the results of
// the benchmarks. The same results always produce the same files.
//
//	go run ./bench/report -results ../docs/benchmarks/results.json -docs ../docs
package main

import (
	"errors"
	"flag"
	"log"
	"os"
	"path/filepath"

	"github.com/eventseries/eventseries/test/bench"
)

func main() {
	results := flag.String("results", "../docs/benchmarks/results.json", "the file with the results")
	docs := flag.String("docs", "../docs", "the directory for benchmarks.md and benchmarks/*.svg")
	flag.Parse()
	files, err := report(*results)
	for name, data := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(*docs, filepath.FromSlash(name)), data, 0o644))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// report returns the generated files by their paths below docs.
func report(resultsFile string) (map[string][]byte, error) {
	results, err := bench.ReadResults(resultsFile)
	if err != nil {
		return nil, err
	}
	files, err := pictures(&results)
	if err != nil {
		return nil, err
	}
	files["benchmarks.md"], err = page(&results)
	return files, err
}
