// Package cli contains the commands of kubectl series.
//
// # Guarantees
//
//   - A command requires no permission but list on events, and watch with --watch. With
//     --owners, timeline also reads the metadata of other objects, and names what it misses.
//   - An error is one line on stderr that says what is wrong and what is valid. The exit
//     code is then 1.
//   - Tables, timelines, and descriptions cannot control the terminal. Templates print what an
//     Event contains, as in kubectl.
package cli
