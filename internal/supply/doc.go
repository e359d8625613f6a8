// Package supply tests the supply chain of this module: the modules that it requires, and
// their licenses.
//
// # Usage
//
//	go test ./internal/supply
//
// # Guarantees
//
//   - The license of every module that the packages or their tests import is compatible
//     with Apache-2.0.
//   - The tests do not access the network.
//
// # Limitations
//
//   - The tests recognize common licenses by their phrases. `make licenses` is more
//     thorough.
package supply
