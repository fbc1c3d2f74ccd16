package bolt

import (
	"fmt"
	"os"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/internal/store"
)

// step brings a store from one format to the next one.
type step func(tx *bbolt.Tx) error

// steps has the step from each format, the oldest first: steps[0] leads from format 1 to
// format 2. Format 1 is the first that was ever written.
var steps []step

// migrate brings a file to a format, in one transaction, after it made a copy of it
// next to it. A file of a newer format is refused.
func migrate(db *bbolt.DB, path string, want int, steps []step) error {
	has := 0
	err := db.View(func(tx *bbolt.Tx) (err error) {
		meta := tx.Bucket(metaBucket)
		if meta == nil {
			return &store.CorruptError{What: path, Part: "the file", Err: fmt.Errorf("it is no store: no bucket %q", metaBucket)}
		}
		text := string(meta.Get(formatKey))
		if has, err = strconv.Atoi(text); err != nil || has < 1 {
			return &store.CorruptError{What: path, Part: "its format", Err: fmt.Errorf("%q, want a number", text)}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case has > want:
		return &store.NewerError{What: path, Has: has, Knows: want}
	case has == want:
		return nil
	}
	if err := keepCopy(db, fmt.Sprintf("%s.format%d", path, has)); err != nil {
		return fmt.Errorf("%s: a copy before it is brought from format %d to %d: %w", path, has, want, err)
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for n := has; n < want; n++ {
			if err := steps[n-1](tx); err != nil {
				return fmt.Errorf("%s: from format %d to %d: %w", path, n, n+1, err)
			}
		}
		return tx.Bucket(metaBucket).Put(formatKey, fmt.Append(nil, want))
	})
}

// keepCopy writes a copy, which replaces one that an earlier attempt left.
func keepCopy(db *bbolt.DB, path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := db.View(func(tx *bbolt.Tx) error { _, err := tx.WriteTo(f); return err }); err != nil {
		return err
	}
	return f.Sync()
}
