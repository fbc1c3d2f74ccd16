// regular*.go: reads the files that a command line names: only regular files, up to a
// maximum size, within a time limit; and it replaces files as a whole.
//
// A path may lead to anything: a FIFO without a writer, a terminal, a
// directory, a file on a disk that does not answer. None of them keeps a
// command from ending or from being interrupted.

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// Patience is how long a file may take to be opened, and each piece of it to
// be read.
const Patience = 10 * time.Second

// pieceSize is how much of a file is asked for at a time, in bytes.
const pieceSize = 1 << 20

// File is a regular file that is being read.
type File struct {
	path     string
	file     *os.File
	info     fs.FileInfo
	limit    int64 // bytes, in all
	taken    int64 // of them
	patience time.Duration
	rest     []byte // that was read and not asked for yet
	err      error
}

// Open opens the regular file at path, of which at most limit bytes will be
// read. Symbolic links are followed. The error names the path and what was
// expected; a file that is not there is fs.ErrNotExist.
func Open(path string, limit int64) (*File, error) { return open(path, limit, Patience) }

func open(path string, limit int64, patience time.Duration) (*File, error) {
	f := &File{path: path, limit: limit, patience: patience}
	opened, err := within(f, "opened", func() (opened, error) { return openRegular(path) }, func(o opened) { o.file.Close() })
	if err != nil {
		return nil, err
	}
	f.file, f.info = opened.file, opened.info
	if size := f.info.Size(); size > limit {
		f.Close()
		return nil, tooLarge(path, limit)
	}
	return f, nil
}

func tooLarge(path string, limit int64) error {
	return fmt.Errorf("%s: larger than %d bytes, the most that it may be", path, limit)
}

type opened struct {
	file *os.File
	info fs.FileInfo
}

// openRegular asks what there is before it opens it, since opening alone can set
// a device going, and asks again what it has opened.
func openRegular(path string) (opened, error) {
	info, err := os.Stat(path)
	if err != nil {
		return opened{}, err
	}
	if !info.Mode().IsRegular() {
		return opened{}, notRegular(path, info)
	}
	// Without O_NONBLOCK a FIFO that has taken the file's place would wait for a writer.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return opened{}, err
	}
	if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(path, info)
	}
	if err != nil {
		file.Close()
		return opened{}, err
	}
	return opened{file, info}, nil
}

func notRegular(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s: %s: want a regular file", path, kind(info.Mode()))
}

// kind says what there is in place of a regular file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}

// within lets do run until patience ends, or the process is told to end. What
// comes of it later is given to late, which may be nil.
func within[T any](f *File, what string, do func() (T, error), late func(T)) (none T, err error) {
	type outcome struct {
		value T
		err   error
	}
	told, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	timer := time.NewTimer(f.patience)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.value, o.err
	case <-timer.C:
		err = fmt.Errorf("%s: not %s within %v: want a regular file that can be read", f.path, what, f.patience)
	case <-told.Done():
		err = fmt.Errorf("%s: %w before it was %s", f.path, terminal.ErrInterrupted, what)
	}
	go func() {
		if o := <-done; o.err == nil && late != nil {
			late(o.value)
		}
	}()
	return none, err
}

// Info is what the file was when it was opened.
func (f *File) Info() fs.FileInfo { return f.info }

// Read gives what comes next of the file. The error is io.EOF at its end, and
// names the path when a piece took too long or the file has more bytes than it may.
func (f *File) Read(p []byte) (int, error) {
	if len(f.rest) == 0 && f.err == nil {
		f.next()
	}
	if len(f.rest) == 0 {
		return 0, f.err
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next reads the next piece, with one byte more than there may be.
func (f *File) next() {
	size := min(pieceSize, f.limit-f.taken+1)
	f.rest, f.err = within(f, "read", func() ([]byte, error) {
		piece := make([]byte, size)
		n, err := f.file.Read(piece)
		if n > 0 {
			err = nil // it comes again
		}
		return piece[:n], err
	}, nil)
	if f.taken += int64(len(f.rest)); f.taken > f.limit {
		f.rest, f.err = nil, tooLarge(f.path, f.limit)
	}
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Read gives all of the regular file at path, as Open does: an error, and
// nothing, when it has more than limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// othersMode are the bits of a mode that let others than the owner use a file.
const othersMode = 0o077

// credentialsVariable names the directory that systemd gives a service with its secrets
// (LoadCredential): nobody else can reach it, and the files in it may have mode 0440.
const credentialsVariable = "CREDENTIALS_DIRECTORY"

// Secret is Read of a file with a secret: it refuses one that others than its owner can read
// or write. The error names the file, its mode and what to do.
func Secret(path string, limit int64) ([]byte, error) {
	f, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var others fs.FileMode = othersMode
	if dir := os.Getenv(credentialsVariable); dir != "" && filepath.Dir(filepath.Clean(path)) == filepath.Clean(dir) {
		others = 0o037
	}
	if mode := f.Info().Mode().Perm(); mode&others != 0 {
		return nil, fmt.Errorf("%s: mode %04o: want 0600 (chmod 600 %s), since others can read or write it, and it holds a secret: make another if somebody may have read it", path, mode, path)
	}
	return io.ReadAll(f)
}

// NewSecret makes the file at path, with mode 0600, for a secret that is not there yet: so a
// secret that is told once does not get lost for want of a file. There may be no file of this
// name. The caller writes and closes it, or removes it.
func NewSecret(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s: there is a file of this name already: remove it, or name another", path)
	}
	return f, err
}
