package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), getTermios)
	return err == nil
}

// IsInteractive reports whether a stream is a terminal and this program is in its
// foreground process group, not in the background (&).
func IsInteractive(stream any) bool {
	if !IsTerminal(stream) {
		return false
	}
	group, err := unix.IoctlGetInt(int(stream.(*os.File).Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
