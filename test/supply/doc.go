// Package supply tests the supply chain of the released modules: the modules that they
// require, and their licenses.
//
// # Usage
//
//	cd test && go test ./supply
//
// # Guarantees
//
//   - The license of every module that the packages or their tests import is compatible
//     with Apache-2.0.
//   - No released module replaces another one.
//   - The control plane, the demo, and kubectl series share one set of versions.
//   - The workflows name actions by their commits.
//   - The tests do not access the network, except that the go command can load modules.
//
// # Limitations
//
//   - The tests recognize common licenses by their phrases. `make supply` is more
//     thorough.
package supply
