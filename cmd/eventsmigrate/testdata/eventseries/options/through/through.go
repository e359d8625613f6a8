// Package through does not change, but others get types that do.
package through

import "example.com/testdata/eventseries/options"

// New returns options.
func New() *options.Options { return &options.Options{} }
