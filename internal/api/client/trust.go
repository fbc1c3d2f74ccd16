package client

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Trusted says why a socket at a place that nobody named is not believed: another user of
// this machine could have put it there. Each directory on the way to it, each symbolic
// link, and the socket belong to root or to this user, and nobody else can write the
// directories, but for those in which only the owner of a file can replace it (/tmp).
func Trusted(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, way := range []string{path, real} {
		at := string(filepath.Separator)
		for _, name := range append([]string{""}, strings.Split(strings.Trim(way, at), at)...) {
			at = filepath.Join(at, name)
			info, err := os.Lstat(at)
			if err != nil {
				return err
			}
			if err := trusted(at, info); err != nil {
				return err
			}
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is no socket", path)
	}
	return nil
}

// trusted says why one step on the way to a socket is not believed.
func trusted(at string, info fs.FileInfo) error {
	sys, is := info.Sys().(*syscall.Stat_t)
	if !is || sys.Uid != 0 && int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user: want root or yourself", at)
	}
	if mode := info.Mode(); mode.IsDir() && mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0 {
		return fmt.Errorf("others can write the directory %s (mode %04o)", at, mode.Perm())
	}
	return nil
}
