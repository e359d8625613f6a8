// Package docs tests the Markdown pages of this repository: blocks of code occur in files that
// compile, links resolve, tables match the code, and the figures of README.md match their
// sources. It contains the code of the pages.
//
// Before a block of Go, YAML, JSON, or a diff, name the files that contain its code:
//
//	<!-- from: test/docs/operations_test.go -->
package docs
