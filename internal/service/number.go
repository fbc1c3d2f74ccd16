package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// The revisions that each tenant numbers (resource.State.Numbers) are kept in the store in chunks,
// so that a commit writes the last of a tenant's alone: they outlast the history, which is trimmed.
const (
	// numbersPrefix begins the keys of chunks, numbers/TENANT/CHUNK, and numbersKey is that of
	// the object that says how they are written.
	numbersPrefix = "numbers/"
	numbersKey    = numbersPrefix + "format"
	numbersFormat = `1`
	// numbersChunk is how many revisions a chunk has.
	numbersChunk = 100
)

// chunk is the object with a tenant's chunk, counted from 0.
func chunk(tenant string, n int, list []uint64) store.Object {
	list = list[n*numbersChunk : min(len(list), (n+1)*numbersChunk)]
	data, _ := json.Marshal(list)
	return store.Object{Key: numbersPrefix + tenant + "/" + fmt.Sprintf("%08d", n), Value: data}
}

// numberPuts is what the store is to keep of the numbers with one revision more, which tenants
// number: all chunks where a store of an older version has none.
func (s *Service) numberPuts(tenants []string, revision uint64) (puts []store.Object) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tenants = slices.DeleteFunc(tenants, func(t string) bool { return t == "" || t == resource.Provider })
	for _, t := range tenants {
		list := s.state.Numbers[t]
		list = append(list[:len(list):len(list)], revision)
		first := (len(list) - 1) / numbersChunk
		if !s.numbered {
			first = 0
		}
		for n := first; n*numbersChunk < len(list); n++ {
			puts = append(puts, chunk(t, n, list))
		}
	}
	if s.numbered {
		return puts
	}
	for _, t := range s.state.Numbers.Tenants() {
		if list := s.state.Numbers[t]; !slices.Contains(tenants, t) {
			for n := 0; n*numbersChunk < len(list); n++ {
				puts = append(puts, chunk(t, n, list))
			}
		}
	}
	return append(puts, store.Object{Key: numbersKey, Value: []byte(numbersFormat)})
}

// numbersRead collects the chunks of a store.
type numbersRead struct {
	numbered bool
	chunks   map[string]map[int][]uint64 // by tenant
}

// take takes an object of a store, if it is one of the numbers'.
func (n *numbersRead) take(o store.Object) (is bool, err error) {
	id, is := cutPrefix(o.Key, numbersPrefix)
	if !is {
		return false, nil
	}
	if o.Key == numbersKey {
		if n.numbered = string(o.Value) == numbersFormat; !n.numbered {
			return true, fmt.Errorf("store: %s: %q, want %s: a newer ibwarden has written it", o.Key, o.Value, numbersFormat)
		}
		return true, nil
	}
	tenant, text, _ := strings.Cut(id, "/")
	i, err := strconv.Atoi(text)
	var list []uint64
	if err == nil {
		err = json.Unmarshal(o.Value, &list)
	}
	if err != nil {
		return true, fmt.Errorf("store: %s: %w", o.Key, err)
	}
	if n.chunks == nil {
		n.chunks = map[string]map[int][]uint64{}
	}
	if n.chunks[tenant] == nil {
		n.chunks[tenant] = map[int][]uint64{}
	}
	n.chunks[tenant][i] = list
	return true, nil
}

// enter puts the numbers into a state.
func (n *numbersRead) enter(state *resource.State) error {
	for tenant, chunks := range n.chunks {
		var all []uint64
		for i := range len(chunks) {
			list := chunks[i]
			if len(list) == 0 || len(list) > numbersChunk || len(list) < numbersChunk && i < len(chunks)-1 {
				return fmt.Errorf("store: %s%s: %d revisions in chunk %d of %d: want %d, or fewer in the last", numbersPrefix, tenant, len(list), i, len(chunks), numbersChunk)
			}
			all = append(all, list...)
		}
		for i := range all {
			if i > 0 && all[i] <= all[i-1] || all[i] > state.Last() {
				return fmt.Errorf("store: %s%s: revision %d is out of order, or after the last, %d", numbersPrefix, tenant, all[i], state.Last())
			}
		}
		state.Numbers[tenant] = all
	}
	return nil
}

// number gives the revisions of a store of an older version their numbers: those in the history, and
// those of objects whose history is not kept any more.
func (s *Service) number(ctx context.Context, state *resource.State) error {
	of := map[string]map[uint64]bool{}
	add := func(tenant string, revision uint64) {
		if of[tenant] == nil {
			of[tenant] = map[uint64]bool{}
		}
		of[tenant][revision] = true
	}
	for _, o := range state.Objects() {
		_, revision := state.Object(o.Key())
		for _, t := range state.Touches(resource.Diff{Edits: []resource.Edit{{Key: o.Key(), After: o}}}) {
			add(t, revision)
		}
	}
	for rev, err := range s.config.Store.Revisions(ctx, store.Range{MayLack: true}) {
		if errors.Is(err, store.ErrNotFound) {
			break // it has no revisions
		}
		if err != nil {
			return err
		}
		record, err := decodeRecord(rev)
		if err != nil {
			return err
		}
		for _, t := range record.Concerns {
			add(t, rev.Number)
		}
	}
	for tenant, revisions := range of {
		delete(revisions, 0)
		if tenant != resource.Provider && tenant != "" && len(revisions) > 0 {
			state.Numbers[tenant] = slices.Sorted(maps.Keys(revisions))
		}
	}
	return nil
}

// Since are the changes after a revision, which a caller knows as a number, up to the last, the newest
// first: for the provider those of others too, since the rules decide what he may bring back; for a
// tenant those that changed something it sees, which are all that its rollback can undo. The error is
// store.ErrCompacted where one is not kept any more.
func (s *Service) Since(ctx context.Context, by resource.Caller, to, number, last uint64) (later []resource.Diff, err error) {
	var records []Record
	if by.IsProvider() {
		if last > to {
			records, err = s.History(ctx, by, store.Range{From: last, Newest: true, Limit: int(last - to)})
		}
		if n := len(records); err == nil && n > 0 && records[n-1].Number != to+1 {
			err = store.ErrCompacted
		}
	} else {
		s.mu.RLock()
		own := slices.Clone(s.state.Numbers[by.Tenant][number:])
		s.mu.RUnlock()
		for _, n := range slices.Backward(own) {
			if n <= last && err == nil {
				var r Record
				r, err = s.record(ctx, n)
				records = append(records, r)
			}
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		err = store.ErrCompacted
	}
	for i := range records {
		if err != nil {
			return nil, err
		}
		var d resource.Diff
		d, err = records[i].diff()
		later = append(later, d)
	}
	return later, err
}

// diff is what a revision of the history changed.
func (r *Record) diff() (d resource.Diff, err error) {
	for _, e := range r.Edits {
		edit := resource.Edit{Key: e.Key}
		if edit.Before, err = object(e.Key, e.Before); err == nil {
			edit.After, err = object(e.Key, e.After)
		}
		if err != nil {
			return d, err
		}
		d.Edits = append(d.Edits, edit)
	}
	return d, nil
}
