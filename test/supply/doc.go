// Package supply tests what the released modules require, and what the workflows use:
//
//   - No released module replaces another one.
//   - The control plane, the demo, and kubectl series share one set of versions.
//   - The workflows name actions by their commits.
//
// `make supply` checks the licenses of the dependencies, with go-licenses.
package supply
