// Package move plans how programs leave the legacy recorder of Kubernetes events.
//
//	p := move.NewProgram(fset)
//	p.AddFile(pkg, file, src) // all files of all packages first
//	p.Collect(pkg)
//	plan := p.Plan(move.Options{Target: move.EventSeries}, nil)
//	outputs := p.Outputs(plan, move.EventSeries)
//
// A node is a place whose type is a legacy one: a variable, a field, a parameter, an
// occurrence of the type, the call of a constructor, or a method with a legacy signature.
// [Program.Collect] unites nodes that must have the same type. [Program.Plan] decides for
// each set of nodes whether it moves, and writes the edits of those that do.
//
// # Guarantees
//
//   - A set moves completely or not at all. At the border to code outside of the program,
//     package compat adapts a recorder.
//   - Edits replace as little as possible, so comments and formatting stay.
//   - The result does not depend on the order in which files are parsed.
//
// # Limitations
//
//   - A plan can be wrong about code that it does not understand, so type-check its
//     result, and plan again without the sets that do not compile.
//   - Recorders that pass through reflection or through code outside of the program as
//     an empty interface are unknown.
package move
