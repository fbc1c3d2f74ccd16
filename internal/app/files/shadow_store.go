package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/shadow"
)

const (
	// Days is how long records are kept at most, in days.
	Days = 400
	// BytesMax is how many bytes they take at most, FileMax those of one file: after that, and
	// every day (UTC), a new one begins.
	BytesMax, FileMax = 128 << 20, 16 << 20
	// PendingMax is how many records wait for a disk that is full; beyond, the oldest are lost.
	PendingMax = 100_000
	// fileReadMax is the most bytes of a file that are read: one append may pass FileMax.
	fileReadMax = 4 * FileMax
	// nameLayout is the name of a file, by the time at which it was begun.
	nameLayout = "20060102T150405Z.jsonl"
	lockName   = "lock"
)

// Store is a directory that this process writes to.
type Store struct {
	dir  string
	lock *os.File
	file *os.File // nil before the first record
	// begun is when the file was, size what it has, in bytes.
	begun   time.Time
	size    int64
	pending []shadow.Record
	torn    bool // the last line may be a part of one
}

// OpenShadow opens the directory to write to it, and makes it where it is not there. Only one process
// at a time can.
func OpenShadow(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: another ibwarden keeps records there: want one at a time", dir)
	}
	return &Store{dir: dir, lock: lock}, nil
}

// Close lets another process write.
func (s *Store) Close() error {
	defer s.lock.Close()
	if s.file != nil {
		return s.file.Close()
	}
	return nil
}

// Append keeps records. openShadow gives those with which a new file begins, so that it can be read
// without the older ones. After an error the records wait for the next call.
func (s *Store) Append(now time.Time, records []shadow.Record, openShadow func() []shadow.Record) error {
	s.pending = append(s.pending, records...)
	s.pending = s.pending[max(0, len(s.pending)-PendingMax):]
	list, fresh := s.pending, s.file == nil || s.size > FileMax || !sameDay(s.begun, now)
	if fresh {
		if err := s.next(now); err != nil {
			return err
		}
		list = slices.Concat(openShadow(), list)
	}
	if err := s.write(list); err != nil {
		if fresh { // it has to begin with them
			s.file.Close()
			s.file = nil
		}
		return err
	}
	s.pending = nil
	return nil
}

func sameDay(a, b time.Time) bool {
	return a.UTC().Format(time.DateOnly) == b.UTC().Format(time.DateOnly)
}

// next begins a file, and removes those that are too many.
func (s *Store) next(now time.Time) error {
	file, err := os.OpenFile(filepath.Join(s.dir, now.UTC().Format(nameLayout)), os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if s.file != nil {
		s.file.Close()
	}
	s.file, s.begun, s.size, s.torn = file, now, 0, true // it may be there already
	list, err := list(s.dir)
	if err != nil {
		return err
	}
	total := int64(0)
	for i, f := range slices.Backward(list) {
		total += f.size
		if i < len(list)-1 && (total > BytesMax-2*FileMax || now.Sub(f.begun) > Days*24*time.Hour) {
			err = errors.Join(err, os.Remove(filepath.Join(s.dir, f.name)))
		}
	}
	return err
}

func (s *Store) write(records []shadow.Record) error {
	var b bytes.Buffer
	if s.torn {
		b.WriteByte('\n')
	}
	e := json.NewEncoder(&b)
	for i := range records {
		if err := e.Encode(&records[i]); err != nil {
			return err
		}
	}
	n, err := s.file.Write(b.Bytes())
	s.size += int64(n)
	if err == nil {
		err = s.file.Sync()
	}
	s.torn = err != nil
	return err
}

// recordFile is a file of records.
type recordFile struct {
	name  string
	begun time.Time
	size  int64
}

// list are the files of a directory, the oldest first.
func list(dir string) (out []recordFile, err error) {
	entries, err := os.ReadDir(dir) // by name, which is by time
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		begun, err := time.Parse(nameLayout, e.Name())
		if err != nil || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was the oldest
		}
		if err != nil {
			return nil, err
		}
		out = append(out, recordFile{e.Name(), begun, info.Size()})
	}
	return out, nil
}

// ReadShadow reads the records of a directory that reach into the time after since, in the order of
// time, whether or not another process writes there. damaged counts lines that could not be
// read; what a crash left of one is none.
func ReadShadow(dir string, since time.Time) (records []shadow.Record, damaged int, err error) {
	list, err := list(dir)
	if err != nil {
		return nil, 0, err
	}
	for i, f := range list {
		if i+1 < len(list) && list[i+1].begun.Before(since) {
			continue // what was openShadow in it is in the next
		}
		text, err := Read(filepath.Join(dir, f.name), fileReadMax)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		for line := range bytes.Lines(text) {
			var r shadow.Record
			switch line = bytes.TrimSpace(line); {
			case len(line) == 0:
			case json.Unmarshal(line, &r) == nil:
				records = append(records, r)
			default:
				damaged++
			}
		}
	}
	return records, damaged, nil
}
