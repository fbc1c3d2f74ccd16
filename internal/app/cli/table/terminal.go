package table

import (
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal tells whether somebody sits at the other end of a stream.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), getTermios)
	return err == nil
}

// IsAttended tells whether somebody sits at the other end of a stream and speaks to
// this program: one that a shell runs in the background (&) is not spoken to.
func IsAttended(stream any) bool {
	if !IsTerminal(stream) {
		return false
	}
	group, err := unix.IoctlGetInt(int(stream.(*os.File).Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
