// Package readers tests what programs that read Events make of those of this project and of
// client-go's recorders. The rules of each program are a function in readers.go, with the
// revision that it follows. The test writes the table of docs/consumers.md.
package readers
