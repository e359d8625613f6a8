// Package docs tests the documentation of this repository: its Markdown pages and the
// comments of its code. It contains the code in the pages as tests.
//
// # Usage
//
// Before a block of Go, YAML or JSON, name the files that contain its code:
//
//	<!-- from: test/docs/operations_test.go -->
//
// To document a command, use a target of the Makefile, or add the command to
// blocks_test.go with the test that runs it.
//
// # Guarantees
//
//   - Each block of code occurs in the files that it names, so it compiles, and tests
//     run it.
//   - Each command is a target of the Makefile, or a test runs it.
//   - The tables of options, log messages, drop reasons, states and versions match the
//     code.
//   - Links between pages resolve.
//   - Exported identifiers and packages have comments. The comments of public packages
//     describe their usage, guarantees and limitations.
//
// # Limitations
//
//   - The tests do not access the network, so they check only the syntax of other links.
package docs
