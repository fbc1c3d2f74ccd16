package history

import (
	"context"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Entry is one line of the audit log.
type Entry struct {
	Sequence uint64    `json:"sequence,omitempty" doc:"for the provider"`
	Time     time.Time `json:"time"`
	Caller   string    `json:"caller"`
	Tenant   string    `json:"tenant"`
	Action   string    `json:"action"`
	Decision string    `json:"decision"`
	Reason   string    `json:"reason,omitempty" doc:"why it was refused"`
	// Count and Since are of refusals that were counted.
	Count    uint64     `json:"count,omitempty" doc:"so many refusals of one kind after the first, which has an entry of its own, from since to time; absent for one decision"`
	Since    *time.Time `json:"since,omitempty" doc:"the first of them"`
	Request  string     `json:"request,omitempty" doc:"X-Request-Id of the request"`
	Revision uint64     `json:"revision,omitempty" doc:"that it made"`
	Hash     string     `json:"hash,omitempty" doc:"of the entry: the next one has it as its previous"`
}

// EntryOf is an entry as a caller sees it. A tenant is not told its place among the entries of all,
// nor the hash, by which those between could be guessed.
func EntryOf(s *resource.State, e store.Entry, c resource.Caller) Entry {
	out := Entry{
		Sequence: e.Sequence, Time: e.Time, Caller: e.Caller, Tenant: e.Tenant, Action: e.Action, Decision: string(e.Decision),
		Reason: e.Reason, Request: e.Request, Revision: s.NumberFor(c, e.Revision), Hash: e.Hash.String(), Count: e.Count,
	}
	if e.Count > 0 {
		out.Since = &e.Since
	}
	if !c.IsProvider() {
		out.Sequence, out.Hash = 0, ""
	}
	return out
}

// Reason is why something is done that has no other parameters.
type Reason struct {
	Why string `header:"Why" maxLength:"500" doc:"the reason, for the history; it has to be given"`
}

// Verified says whether the audit log is as it was written.
type Verified struct {
	Holds    bool   `json:"holds" doc:"no entry was changed, removed, added or moved"`
	Entries  uint64 `json:"entries"`
	Sequence uint64 `json:"sequence" doc:"of the last entry; of the one at which the chain breaks when it does not hold"`
	Head     string `json:"head,omitempty" doc:"SEQUENCE:HASH of the last entry: written down elsewhere, it can be checked later"`
	Reason   string `json:"reason,omitempty" doc:"what is wrong at that entry"`
}

// Verify checks the audit log of a store, and that the chain passes through heads that
// were written down elsewhere.
func Verify(ctx context.Context, s store.Store, heads []store.Head) (v Verified, err error) {
	contents, n, err := store.VerifyStore(ctx, s, heads)
	var broken *store.BrokenError
	switch {
	case errors.As(err, &broken):
		return Verified{Entries: n, Sequence: broken.Sequence, Reason: broken.Reason}, nil
	case err != nil:
		return v, err
	}
	return Verified{Holds: true, Entries: n, Sequence: contents.Audit.Sequence, Head: contents.Audit.String()}, nil
}
