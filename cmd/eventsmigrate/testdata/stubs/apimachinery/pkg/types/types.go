// Package types has the types that the tests of the linter use.
package types

// UID identifies an object.
type UID string
