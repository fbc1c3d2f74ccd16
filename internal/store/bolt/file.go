package bolt

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/internal/store"
)

// prepare makes the directory if it is not there, and looks who may read and replace the
// file.
func prepare(dir, path string) error {
	if err := os.Mkdir(dir, dirMode); err == nil {
		if err := syncDirectory(filepath.Dir(dir)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: want a directory", dir)
	}
	if err := private(dir, info, dirMode); err != nil {
		return err
	}
	info, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return create(dir, path)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: want a regular file, it is %s", path, info.Mode().Type())
	}
	if info.Size() == 0 {
		return &store.CorruptError{What: path, Part: "the file", Err: errors.New("it is empty")}
	}
	return private(path, info, fileMode)
}

// create makes an empty store under another name, and then gives it its own. A file with the
// name of a store is therefore never one that was not written to its end, and
// one without bytes is damaged and not new.
func create(dir, path string) error {
	temp, err := os.CreateTemp(dir, FileName+".new*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(temp.Name(), fileMode, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		meta, err := tx.CreateBucket(metaBucket)
		if err != nil {
			return err
		}
		for _, name := range buckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		if err := meta.Put(formatKey, fmt.Append(nil, Format)); err != nil {
			return err
		}
		return putState(tx, &store.State{})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	// Link does not replace a store that another process made meanwhile.
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDirectory(dir)
}

// private looks whether only this user has access to a file.
func private(path string, info fs.FileInfo, want fs.FileMode) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s: %w: its mode is %04o, want %04o: see who read it, then chmod %o %s", path, store.ErrPermissions, mode, want, want, path)
	}
	if at, ok := info.Sys().(*syscall.Stat_t); ok && int(at.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w: it belongs to user %d, and this process runs as user %d", path, store.ErrPermissions, at.Uid, os.Geteuid())
	}
	return nil
}

func syncDirectory(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// holder says which process has locked a file, as far as the system tells.
func holder(path string) string {
	const unknown = "which one is not known"
	info, err := os.Stat(path)
	if err != nil {
		return unknown
	}
	at, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unknown
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return unknown
	}
	defer locks.Close()
	inode := fmt.Sprintf(":%d", at.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) || f[4] == "-1" {
			continue
		}
		name, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			return "process " + f[4]
		}
		return fmt.Sprintf("process %s (%q)", f[4], strings.TrimSpace(string(name)))
	}
	return unknown
}
