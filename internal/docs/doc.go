// Package docs is tests of what people read: the pages of this repository and the
// comments of its code.
//
// A page says of each block of code where it is from, in a comment before it:
//
//	<!-- from: test/docs/operations_test.go -->
//
// There it must stand as it is, so that it is compiled, and run by a test. A
// command must be a target of the Makefile, or be known to what runs it
// (commands_test.go). Tables of options, log messages, drop reasons and states must
// have what the code has, and links must lead somewhere.
package docs
