// Package consumers runs programs that read Events on a real API server, with Events
// that this project writes through each of its sinks. Its tests compare what the
// programs show with docs/consumers.md.
//
// # Usage
//
// Run "make consumers". If a program shows something else than the page says, a test
// fails. After a check of the difference,
//
//	go test . -write
//
// writes what the programs show into the page.
//
// # Guarantees
//
//   - The page contains the output of the versions in go.mod.
//   - The tests need no installed program: kubectl is a part of the test binary.
//
// # Limitations
//
//   - The page describes further programs, which are not Go modules, from their
//     sources.
package consumers
