// Package move plans how programs leave the legacy recorder of Kubernetes events.
//
// Add all files of all packages to a [Program], and then the packages. [Program.Collect] unites
// the nodes that must have the same type. [Program.Plan] decides for each set of nodes whether it
// moves, completely or not at all, and [Program.Outputs] applies the edits. They replace as little
// as possible. Package compat adapts recorders at the border to code outside of the program.
//
// A plan can be wrong about code that it does not understand, so type-check its result, and
// plan again without the sets that do not compile. Recorders that pass through reflection or
// through code outside of the program as an empty interface are unknown.
package move
