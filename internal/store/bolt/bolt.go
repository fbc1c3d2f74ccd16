package bolt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/ibwarden/ibwarden/internal/store"
)

// FileName is the name of the store in its directory.
const FileName = "store.db"

// Modes of the file and of its directory: others have no access.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// LockWait is how long Open waits for another process to close the store.
const LockWait = 500 * time.Millisecond

// Format is the version of the format that this package writes.
const Format = 1

// The buckets of a file. Numbers are keys of 8 bytes, most significant first.
var (
	metaBucket     = []byte("meta")
	objectBucket   = []byte("object")   // key: value
	revisionBucket = []byte("revision") // number: epoch in 8 bytes, data
	outcomeBucket  = []byte("outcome")  // number of the revision: data
	auditBucket    = []byte("audit")    // number: line

	buckets = [][]byte{objectBucket, revisionBucket, outcomeBucket, auditBucket}
)

// Keys of the bucket meta.
var (
	formatKey     = []byte("format")     // a decimal number, without a frame
	stateKey      = []byte("state")      // store.State as JSON
	incompleteKey = []byte("incomplete") // there while the store is filled
)

// Store is a store in a file. It is a store.Store.
type Store struct {
	path  string
	queue queue

	mu     sync.Mutex    // held while writing and closing
	failed error         // a sync failed
	news   chan struct{} // closed at the next revision
	closed chan struct{}

	db   *bbolt.DB
	file *os.File     // of db
	use  sync.RWMutex // read-held while db is in use
	now  func() time.Time
}

var _ store.Store = (*Store)(nil)

// Open opens the store in a directory, and makes both if they are not there. It fails
// with ErrLocked, ErrPermissions, ErrCorrupt or ErrNewer, or with the error of the system.
func Open(dir string) (*Store, error) {
	path := filepath.Join(dir, FileName)
	if err := prepare(dir, path); err != nil {
		return nil, err
	}
	s := &Store{path: path, news: make(chan struct{}), closed: make(chan struct{}), now: time.Now}
	if err := s.guard("the file", s.open); err != nil {
		s.abandon()
		return nil, err
	}
	return s, nil
}

func (s *Store) open() (err error) {
	s.db, err = bbolt.Open(s.path, fileMode, &bbolt.Options{
		Timeout: LockWait, FreelistType: bbolt.FreelistMapType,
		OpenFile: func(path string, flags int, mode os.FileMode) (_ *os.File, err error) {
			s.file, err = os.OpenFile(path, flags&^os.O_CREATE|syscall.O_NOFOLLOW, mode)
			return s.file, err
		},
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%s: %w: %s", s.path, store.ErrLocked, holder(s.path))
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch),
		err != nil && strings.Contains(err.Error(), "file size too small"):
		return &store.CorruptError{What: s.path, Part: "the file", Err: err}
	case err != nil:
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if err := s.complete(); err != nil {
		return err
	}
	if err := migrate(s.db, s.path, Format, steps); err != nil {
		return err
	}
	return s.db.View(s.check)
}

// abandon gives up a file that could not be opened as a store. When bbolt meets a damaged
// page it leaves the file mapped and locked, and a mapped file stays locked when it
// is closed.
func (s *Store) abandon() {
	if s.file == nil || s.db != nil && s.guard("the file", s.db.Close) == nil {
		return
	}
	syscall.Flock(int(s.file.Fd()), syscall.LOCK_UN)
	s.file.Close()
}

// complete looks whether the file has all pages that it says it has: reading a page that
// a mapped file does not have would end the process.
func (s *Store) complete() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	return s.db.View(func(tx *bbolt.Tx) error {
		if info.Size() < tx.Size() {
			return &store.CorruptError{What: s.path, Part: "the file", Err: fmt.Errorf("it has %d bytes, and its first page says %d: its end is missing", info.Size(), tx.Size())}
		}
		return nil
	})
}

// check compares the state with the ends of the history and of the log.
func (s *Store) check(tx *bbolt.Tx) error {
	for _, name := range buckets {
		if tx.Bucket(name) == nil {
			return s.corrupt("the file", fmt.Errorf("it has no bucket %q", name))
		}
	}
	if tx.Bucket(metaBucket).Get(incompleteKey) != nil {
		return nil // Fill empties it
	}
	state, err := s.state(tx)
	if err != nil {
		return err
	}
	if last := lastNumber(tx, revisionBucket); last != state.Revision {
		return s.corrupt("the history", fmt.Errorf("its last revision is %d, and the state says %d", last, state.Revision))
	}
	last := lastNumber(tx, auditBucket)
	if last != state.Audit.Sequence {
		return s.corrupt("the audit log", fmt.Errorf("its last entry is %d, and the state says %d", last, state.Audit.Sequence))
	}
	if last == 0 {
		return nil
	}
	e, err := s.entry(last, tx.Bucket(auditBucket).Get(number(last)))
	if err == nil && e.Hash != state.Audit.Hash {
		err = s.corrupt("the audit log", fmt.Errorf("its last entry has the hash %s, and the state says %s", e.Hash, state.Audit.Hash))
	}
	return err
}

// Close releases the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return nil
	default:
	}
	close(s.closed)
	s.use.Lock()
	defer s.use.Unlock()
	return s.db.Close()
}

// view runs a function in a transaction that reads.
func (s *Store) view(ctx context.Context, f func(tx *bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.use.RLock()
	defer s.use.RUnlock()
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
	}
	return s.guard("a page of the file", func() error {
		return s.db.View(func(tx *bbolt.Tx) error {
			if err := s.whole(tx); err != nil {
				return err
			}
			return f(tx)
		})
	})
}

// update runs a function in a transaction that writes.
func (s *Store) update(ctx context.Context, f func(tx *bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updateLocked(ctx, func(tx *bbolt.Tx) error {
		if err := s.whole(tx); err != nil {
			return err
		}
		return f(tx)
	})
}

// whole looks whether a restore has ended.
func (s *Store) whole(tx *bbolt.Tx) error {
	if tx.Bucket(metaBucket).Get(incompleteKey) != nil {
		return fmt.Errorf("%s: %w", s.path, store.ErrIncomplete)
	}
	return nil
}

func (s *Store) updateLocked(ctx context.Context, f func(tx *bbolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.closed:
		return store.ErrClosed
	default:
	}
	if s.failed != nil {
		return s.failed
	}
	s.use.RLock()
	defer s.use.RUnlock()
	if err := s.inPlace(); err != nil {
		return err
	}
	var refused error
	err := s.guard("a page of the file", func() error {
		return s.db.Update(func(tx *bbolt.Tx) error { refused = f(tx); return refused })
	})
	if err == nil || refused != nil || errors.Is(err, store.ErrCorrupt) {
		return err
	}
	return s.failure(err)
}

// inPlace looks whether the file is still the one in the directory: what is written to one that
// was removed or replaced is lost with the process.
func (s *Store) inPlace() error {
	own, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("%s: %w: %w", s.path, store.ErrUnavailable, err)
	}
	if at, err := os.Lstat(s.path); err != nil || !os.SameFile(own, at) {
		return fmt.Errorf("%s: %w: the file was removed, or another one is in its place, and this process has the first one open: put that back, or restart", s.path, store.ErrUnavailable)
	}
	return nil
}

// failure says what became of a transaction that bbolt could not write.
func (s *Store) failure(err error) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		var op *os.PathError // of a write; a sync that fails has none
		if errors.As(err, &op) && errors.Is(err, full) {
			return fmt.Errorf("%s: %w: %w", s.path, store.ErrFull, err)
		}
	}
	if strings.HasPrefix(err.Error(), "file resize error") { // bbolt does not wrap it
		return fmt.Errorf("%s: %w: %w", s.path, store.ErrFull, err)
	}
	s.failed = fmt.Errorf("%s: %w: a write failed, and what the disk has of it is not known; restart to read it again: %w", s.path, store.ErrUnavailable, err)
	return s.failed
}

// guard makes errors out of panics of bbolt over pages that are damaged, and of faults where the
// mapped file has no page.
func (s *Store) guard(part string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = s.corrupt(part, fmt.Errorf("%v", p))
		}
	}()
	return f()
}

func (s *Store) corrupt(part string, err error) error {
	return &store.CorruptError{What: s.path, Part: part, Err: err}
}

func (s *Store) state(tx *bbolt.Tx) (*store.State, error) {
	var out store.State
	data, err := store.OpenFrame("state", tx.Bucket(metaBucket).Get(stateKey))
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil, s.corrupt("its state", err)
	}
	return &out, nil
}

func putState(tx *bbolt.Tx, state *store.State) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return tx.Bucket(metaBucket).Put(stateKey, store.SealFrame("state", data))
}

// number is the key of a number.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// lastNumber is the last key of a bucket of numbers, 0 if it is empty.
func lastNumber(tx *bbolt.Tx, bucket []byte) uint64 {
	k, _ := tx.Bucket(bucket).Cursor().Last()
	if len(k) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(k)
}

// named is what the checksum of a numbered value covers besides it.
func named(bucket []byte, n uint64) string { return fmt.Sprintf("%s %d", bucket, n) }

// allOf is the limit of a range without one.
const allOf = math.MaxInt
