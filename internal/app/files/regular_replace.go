package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// IsFull reports whether an error says that there is no room for what was to be written: the
// file system is full, or the quota or the largest size of a file is reached.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// Replace replaces a file as a whole by what write writes: a crash leaves
// the old one or the new one, and what it returned nil for is on the disk. Only
// its owner can read it.
func Replace(path string, write func(io.Writer) error) error {
	return ReplaceAs(path, 0o600, write)
}

// ReplaceAs is Replace for a file that has a mode afterwards.
func ReplaceAs(path string, mode os.FileMode, write func(io.Writer) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it has been renamed
	if err = write(f); err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Bytes writes data, for Replace.
func Bytes(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}
