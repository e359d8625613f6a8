// Package cli contains the commands of kubectl series.
//
// # Guarantees
//
//   - A command requires no permission but list on events, and watch with --watch. Some
//     commands read other objects if they may, and name what they miss where it matters.
//   - An error is one line on stderr that says what is wrong and what is valid. The exit
//     code is then 1.
//   - Tables, timelines, and descriptions cannot control the terminal. Templates print what an
//     Event contains, as in kubectl.
package cli
