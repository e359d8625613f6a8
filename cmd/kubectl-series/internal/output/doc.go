// Package output prints series as objects: as JSON, YAML, names, JSONPath, Go templates,
// or custom columns.
//
// An object has the fields of the Event that do not depend on its recorder, with the same
// names, and what the Event means at the time of the command: the state, the count, the
// times, and the rate.
package output
