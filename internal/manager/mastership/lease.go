package mastership

import "time"

const (
	// DefaultTTL is how long a record stands before another manager may take it.
	// MinTTL leaves room for a store that answers in some milliseconds, MaxTTL is as long as a
	// subnet may be without a manager.
	DefaultTTL = 500 * time.Millisecond
	MinTTL     = 200 * time.Millisecond
	MaxTTL     = 10 * time.Second
	// AnswerTTL is how long a manager that has told a master that it is not master writes
	// nothing. All managers have to agree on it, so that it cannot be set.
	AnswerTTL = 500 * time.Millisecond
	// Patience is how long writes wait for the right to write before they fail: stores elect
	// a leader of their own in one or two seconds.
	Patience = 3 * time.Second
	// AskEvery is how often other managers are asked while the store does not answer.
	AskEvery = AnswerTTL / shares
	// RoundEvery is how often a master that may not write looks for another master: one that
	// it did not see before has the right.
	RoundEvery = time.Second
	// DeafAfter is how long the device next to a master does not answer until the master is
	// deaf: it keeps nobody else from writing. It is asked when nothing was heard of any
	// device for PingEvery.
	DeafAfter = time.Second
	PingEvery = DeafAfter / shares
)

// shares is how many renewals there are in a TTL, margins the part of it that is left for
// clocks of different rates, and for the way of a packet from the engine to the wire.
const (
	shares  = 4
	margins = 10
)

// RenewEvery is the time between two renewals.
func RenewEvery(ttl time.Duration) time.Duration { return ttl / shares }

// Margin is how much earlier than its TTL a holder ends.
func Margin(ttl time.Duration) time.Duration { return ttl / margins }

// Record is what a store says of the right to write.
type Record struct {
	// Version is another one whenever the record was written, and higher.
	Version int64
	// Term is the epoch of the manager that took it last; 0 for nobody yet.
	Term uint64
	// Given reports whether it was given up.
	Given bool
	// TTL is that of its holder.
	TTL time.Duration
}

// Keeper is what a manager knows of the record, and whether it is the holder.
type Keeper struct {
	ttl    time.Duration
	record Record
	seen   time.Duration // when it was first known to be so
	known  bool
	term   uint64 // that this manager holds; 0 for none
	since  time.Duration
	until  time.Duration
}

// NewKeeper returns the keeper of a manager that has not seen the record.
func NewKeeper(ttl time.Duration) *Keeper { return &Keeper{ttl: ttl} }

// See takes the record as the store had it, when it was asked before now. One of a lower
// version was read late, or the store was rolled back: it counts from now too, so that another
// manager may take what stands in the store then. Nobody holds two records at once by that,
// since only the one that stands in the store can be taken.
func (k *Keeper) See(now time.Duration, r Record) {
	if k.known && r.Version == k.record.Version {
		return
	}
	k.record, k.seen, k.known = r, now, true
	if r.Term != k.term {
		k.term = 0
	}
}

// Record is what was seen last.
func (k *Keeper) Record() (r Record, known bool) { return k.record, k.known }

// Free is when this manager may take the record, if it stays as it is; false where it was
// not seen.
func (k *Keeper) Free() (at time.Duration, known bool) {
	if !k.known || k.record.Term == 0 || k.record.Given {
		return 0, k.known
	}
	return k.seen + max(k.ttl, k.record.TTL), true
}

// Took reports whether this manager has taken the record that was there before, with a request
// that was sent at a time.
func (k *Keeper) Took(sent time.Duration, term uint64, before Record) {
	if k.since = sent; before.Term == 0 {
		k.since = 0
	}
	k.term, k.until = term, sent+k.ttl-Margin(k.ttl)
}

// Renewed reports whether a renewal has succeeded that was sent at a time.
func (k *Keeper) Renewed(sent time.Duration, term uint64) {
	if term == k.term && term != 0 {
		k.until = max(k.until, sent+k.ttl-Margin(k.ttl))
	}
}

// Lost reports whether this manager is not the holder any more: another one has taken the record,
// or it was given up.
func (k *Keeper) Lost() { k.term = 0 }

// Term is the term of which this manager is the holder; 0 for none.
func (k *Keeper) Term() uint64 { return k.term }

// Grant is what the engine is to be told.
func (k *Keeper) Grant() Grant {
	if k.term == 0 {
		return Grant{}
	}
	return Grant{Term: k.term, Since: k.since, Until: k.until}
}

// Grant is the right to write that a store has given.
type Grant struct {
	// Term is the epoch; 0 where another manager has the right, or nobody.
	Term uint64
	// Since is when the last manager that had it before could write for the last time, at the
	// latest; 0 for none. Until is when it ends; it is not before that of the last Grant.
	Since, Until time.Duration
	// Why says for people why there is none, or why it is not renewed; "" for nothing.
	Why string
}
