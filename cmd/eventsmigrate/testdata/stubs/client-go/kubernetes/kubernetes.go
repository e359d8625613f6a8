// Package kubernetes has the clients that the tests of the linter use.
package kubernetes

// Interface has clients.
type Interface interface{ EventsV1() any }
