package store

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Store keeps the state of the service. Its methods may be called from several
// goroutines. After Close they fail with ErrClosed.
//
// All reads that are iterators read a few values at a time: while the caller looks at
// one, the store is not held. An iterator yields an error at most once, at its end.
type Store interface {
	// Load reads all objects and the state of the store, at one moment.
	Load(ctx context.Context) (*Contents, error)

	// Acquire makes the caller the writer and returns its epoch, which is higher than
	// every epoch before. From then on, commits of older epochs fail with ErrFenced.
	// Owner says who the writer is, for people: at most MaxKey bytes.
	Acquire(ctx context.Context, owner string) (Epoch, error)

	// Commit writes a transaction, all of it or nothing. It fails with ErrFenced,
	// ErrStale, ErrInvalid, ErrTooLarge or ErrNotFound when nothing was written, and
	// with ErrUnavailable or ErrFull when that is not known.
	Commit(ctx context.Context, c Commit) (Committed, error)

	// Revision returns one revision. It fails with ErrNotFound if there is none with
	// this number yet, with ErrCompacted if it was trimmed.
	Revision(ctx context.Context, number uint64) (Revision, error)

	// Revisions yields revisions in a range.
	Revisions(ctx context.Context, r Range) iter.Seq2[Revision, error]

	// Audit yields audit entries in a range. Both end with ErrCompacted when what comes
	// next is trimmed while they read.
	Audit(ctx context.Context, r Range) iter.Seq2[Entry, error]

	// Watch yields the revisions after a number: those in the history at once, others
	// as they are committed, by whomever. It ends with ErrNotFound when the store has no
	// revision with that number, with ErrCompacted when the next revision was trimmed, with ErrUnavailable when the store cannot be reached, with
	// ErrClosed, or with the error of ctx.
	Watch(ctx context.Context, after uint64) iter.Seq2[Revision, error]

	// Trim removes the audit entries before a time and the revisions that they
	// committed. It stops before the entry of the last revision, and does nothing and
	// returns the checkpoint that is there if no entry is that old. It fails with
	// ErrRetention if it would remove what has to be kept.
	Trim(ctx context.Context, t Trim) (Checkpoint, error)

	// Fill puts records into an empty store, which refuses everything else with
	// ErrIncomplete until Fill returned nil, also after a crash. It fails with
	// ErrNotEmpty if the store has been written before. Restore uses it.
	Fill(ctx context.Context, records iter.Seq2[Record, error]) error

	// Close releases the store. It waits for calls that write.
	Close() error
}

// Follower is a Store that tells what others have written since it was read last.
type Follower interface {
	Store

	// Objects reads the objects whose keys begin with a prefix and that were written after
	// a mark, ordered by key, and returns the mark of that moment; all of them for 0. It
	// does not tell of objects that were deleted. They are all of one moment: of a commit
	// it has everything or nothing.
	Objects(ctx context.Context, prefix string, after Mark) ([]Object, Mark, error)

	// Await waits until something may have been committed after a mark, or for a while, or
	// until ctx ends.
	Await(ctx context.Context, after Mark)
}

// Aside begins the keys of objects that a Follower keeps apart: Load, and so a backup, does not
// have them, and a version that does not know of them does not see them.
const Aside = "manager/"

// Mark is a moment in the life of a store.
type Mark int64

// Epoch numbers the writers of a store, from 1. 0 is no epoch.
type Epoch uint64

// Object is a value with its name.
type Object struct {
	Key   string // 1 to MaxKey bytes of printable UTF-8
	Value []byte // at most MaxObject bytes
}

// Contents is what a store held at one moment.
type Contents struct {
	Objects    []Object // by Key, ascending
	Revision   uint64   // the last; 0 if there is none
	Oldest     uint64   // the oldest revision that is kept; 0 if there is none
	Audit      Head
	Checkpoint Checkpoint
	Epoch      Epoch  // the newest
	Owner      string // who acquired it
}

// Commit is one transaction.
type Commit struct {
	Epoch    Epoch
	After    uint64 // the last revision that the caller saw; not compared if the commit has only audit entries and outcomes
	Revision []byte // the new revision, which gets the number After+1; nil for none, else 1 to MaxRevision bytes
	Puts     []Object
	Deletes  []string // keys; one that no object has is no error
	Outcomes []Outcome
	// Audit has the entries without Sequence, Digest, Previous, Hash and Checkpoint,
	// which the store sets. If the commit has a revision, one of them has its number.
	Audit []Entry
}

// Outcome is what became of a revision, for example its plan and its verdict. It
// replaces an earlier outcome of the revision.
type Outcome struct {
	Revision uint64
	Data     []byte // at most MaxOutcome bytes
}

// Committed says what a commit came to.
type Committed struct {
	Revision uint64 // the last revision
	Audit    Head
}

// Revision is one entry of the history.
type Revision struct {
	Number  uint64 // from 1
	Epoch   Epoch  // of its writer
	Data    []byte
	Outcome []byte // nil while there is none
}

// Range selects numbered things.
type Range struct {
	From    uint64 // the first number; 0: the oldest, or with Newest the last
	Limit   int    // how many at most; 0 and less: all
	Newest  bool   // newest first
	MayLack bool   // read what one member has, which may lack the last ones, when there is no majority
}

// Trim says what to remove.
type Trim struct {
	Epoch  Epoch
	Before time.Time // entries with an earlier time are removed, up to the first that has a later one
	Audit  Entry     // recorded in the same transaction, with the checkpoint
}

// RecordKind says what a Record is.
type RecordKind byte

// Kinds of records, in the order in which they come.
const (
	RecordState    RecordKind = 1 // State as JSON: the first record
	RecordObject   RecordKind = 2 // Key and value
	RecordRevision RecordKind = 3 // Number, epoch and data
	RecordOutcome  RecordKind = 4 // Number of its revision, and data
	RecordEntry    RecordKind = 5 // a line of the audit log
)

// Record is a piece of a store, as backups have it.
type Record struct {
	Kind   RecordKind
	Key    string // of an object
	Number uint64 // of a revision or entry
	Epoch  Epoch  // of a revision
	Data   []byte
}

// State is what a store says of itself, apart from objects, revisions and entries.
type State struct {
	Epoch      Epoch      `json:"epoch"`
	Owner      string     `json:"owner,omitempty"`
	Revision   uint64     `json:"revision"`
	Oldest     uint64     `json:"oldest"`
	Audit      Head       `json:"audit"`
	Checkpoint Checkpoint `json:"checkpoint,omitzero"`
}

// Has looks whether the history has a revision: the error is ErrNotFound or ErrCompacted.
func (s *State) Has(n uint64) error {
	switch {
	case n == 0 || n > s.Revision:
		return fmt.Errorf("revision %d: %w: the last is %d", n, ErrNotFound, s.Revision)
	case n < s.Oldest:
		return fmt.Errorf("revision %d: %w: the oldest is %d", n, ErrCompacted, s.Oldest)
	}
	return nil
}
