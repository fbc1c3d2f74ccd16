// history*.go: shows each caller of the API as much of the revisions and of the audit log as
// concerns him.

package views

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
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

// Verified says whether the audit log and the objects are as they were written.
type Verified struct {
	Holds    bool   `json:"holds" doc:"no entry was changed, removed, added or moved, and the objects that were compared are what the revisions wrote"`
	Entries  uint64 `json:"entries"`
	Sequence uint64 `json:"sequence" doc:"of the last entry; of the one at which the chain breaks; 0 where something else in the store is damaged"`
	Head     string `json:"head,omitempty" doc:"SEQUENCE:HASH of the last entry: written down elsewhere, it can be checked later; absent where the log is not as it was written"`
	Reason   string `json:"reason,omitempty" doc:"what is wrong at that entry, in the store or with the objects"`

	Objects     int                `json:"objects" doc:"that are what the last revision that wrote them says; they are compared if the log is as it was written"`
	Differ      int                `json:"differ,omitempty" doc:"objects that are not"`
	Differences []ObjectDifference `json:"differences,omitempty" doc:"the first 1000 of these, by key"`
	NotCompared []string           `json:"not_compared,omitempty" doc:"which objects were not compared, and why"`
}

// ObjectDifference is an object that is not what the revisions wrote.
type ObjectDifference struct {
	Key      string `json:"key"`
	Problem  string `json:"problem" enum:"changed,deleted,added" doc:"added: no revision wrote it, or the one named here deleted it"`
	Revision uint64 `json:"revision,omitempty" doc:"the last one that wrote or deleted it; absent for none"`
}

// String says in words what is wrong with the object.
func (d ObjectDifference) String() string {
	switch {
	case d.Problem == string(service.Changed):
		return fmt.Sprintf("%s was changed: it is not what revision %d wrote", d.Key, d.Revision)
	case d.Problem == string(service.Deleted):
		return fmt.Sprintf("%s was deleted: revision %d wrote it last", d.Key, d.Revision)
	case d.Revision > 0:
		return fmt.Sprintf("%s was added: revision %d deleted it", d.Key, d.Revision)
	}
	return d.Key + " was added: no revision wrote it"
}

// Verify checks the audit log of a store, that the chain passes through heads that were
// written down elsewhere, and that the objects are what the revisions wrote.
func Verify(ctx context.Context, s store.Store, heads []store.Head) (Verified, error) {
	v, err := service.Verify(ctx, s, heads)
	if err != nil {
		return Verified{}, err
	}
	out := Verified{Entries: v.Entries, Objects: v.Objects, Differ: v.Differ}
	if v.Broken != nil {
		var broken *store.BrokenError
		if out.Reason = v.Broken.Error(); errors.As(v.Broken, &broken) {
			out.Sequence, out.Reason = broken.Sequence, broken.Reason
		}
		out.NotCompared = []string{"all objects: the log, the history or the store is not as it was written"}
		return out, nil
	}
	out.Holds, out.Sequence, out.Head = v.Differ == 0, v.Head.Sequence, v.Head.String()
	if v.Differ > 0 {
		out.Reason = fmt.Sprintf("objects that are not what the revisions wrote: %d", v.Differ)
	}
	for _, d := range v.Differences {
		out.Differences = append(out.Differences, ObjectDifference{d.Key, string(d.Problem), d.Revision})
	}
	if v.Apart > 0 {
		out.NotCompared = append(out.NotCompared, fmt.Sprintf("%d that the history does not have (numbers of revisions, idempotency keys, objects of the manager)", v.Apart))
	}
	if v.Oldest > 1 {
		out.NotCompared = append(out.NotCompared, fmt.Sprintf("%d that were written before revision %d, where the history begins, and those of that time that were deleted since", v.Older, v.Oldest))
	}
	return out, nil
}
