// Command report generates docs/benchmarks.md and the picture of the README
// from the results of the benchmarks. The same results always produce the same files.
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
	docs := flag.String("docs", "../docs", "the directory for the pages and the picture")
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
	r, err := bench.ReadResults(resultsFile)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	if files["benchmarks.md"], err = page("benchmarks.md.tmpl", &r); err != nil {
		return nil, err
	}
	files["benchmarks/hour.svg"], err = hourPicture(&r)
	return files, err
}
