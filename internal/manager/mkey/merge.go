package mkey

import (
	"slices"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Merge enters what another book of the same secret knows: the ports that this one does not
// have, the later generation of those that both have, and who was found last behind each
// place. No generation goes back. It returns ErrFull when there is no room for all.
func (b *Book) Merge(o *Book) error {
	defer func(before uint64) {
		if b.version != before {
			b.merged++
		}
	}(b.version)
	if b.at == nil {
		b.at, b.used, b.ids = make(map[observed.Place][]*Entry), make(map[ID]Generation), make(map[ID][]*Entry)
	}
	for id, g := range o.used {
		had, known := b.used[id]
		if !known && len(b.used) >= maxIDs {
			return ErrFull
		}
		if had < g {
			b.used[id] = g
			b.version++
		}
	}
	mine := make(map[*Entry]*Entry)
	for _, x := range o.Entries() {
		s := b.same(x)
		if s == nil {
			s = &Entry{ID: x.ID, Current: x.Current, Next: x.Next}
			b.ids[x.ID] = append(b.ids[x.ID], s)
			b.version++
		} else if s.Wanted() < x.Wanted() || s.Wanted() == x.Wanted() && s.Current < x.Current {
			s.Current, s.Next = x.Current, x.Next
			b.version++
		}
		mine[x] = s
	}
	seen := make(map[observed.Place]bool)
	for _, x := range o.Entries() {
		for _, at := range x.Places {
			if !seen[at] {
				seen[at] = true
				b.rank(at, o.at[at], mine)
			}
		}
	}
	return nil
}

// rank has the entries behind a place in the order of another book, before all others.
func (b *Book) rank(at observed.Place, list []*Entry, mine map[*Entry]*Entry) {
	want := make([]*Entry, len(list))
	for i, x := range list {
		want[i] = mine[x]
	}
	if now := b.at[at]; len(now) >= len(want) && slices.Equal(now[:len(want)], want) {
		return
	}
	for _, s := range slices.Backward(want) {
		b.Cable(s, at)
	}
}

// same is the entry that an entry of another book is about; nil for none.
func (b *Book) same(x *Entry) *Entry {
	for _, at := range x.Places {
		if s := b.Find(x.ID, at); s != nil {
			return s
		}
	}
	return nil
}
