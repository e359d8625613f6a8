package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableColors makes the console interpret escape sequences. Consoles before Windows 10
// cannot.
func enableColors(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	return windows.GetConsoleMode(console, &mode) == nil &&
		windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}
