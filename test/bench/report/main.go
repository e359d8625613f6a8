// Command report generates docs/benchmarks.md, docs/scale.md, and their pictures from the results of
// the benchmarks. The same results always produce the same files.
//
//	go run ./bench/report -results ../docs/benchmarks/results.json -docs ../docs
package main

import (
	"errors"
	"flag"
	"log"
	"maps"
	"os"
	"path/filepath"

	"github.com/eventseries/eventseries/test/bench"
)

func main() {
	results := flag.String("results", "../docs/benchmarks/results.json", "the file with the results")
	docs := flag.String("docs", "../docs", "the directory for the pages and their pictures")
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
	if files["benchmarks.md"], err = page(&results); err != nil {
		return nil, err
	}
	scaled, err := scale(&results)
	maps.Copy(files, scaled)
	return files, err
}
