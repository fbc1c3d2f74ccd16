package mkey

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Entry is an end port at a location, and the keys that it may have there.
// A device with the same GUIDs at another location has another entry, with a generation
// of its own that was never sent anywhere else.
type Entry struct {
	ID ID
	// Current is the generation that the port has, as read, Next one that is
	// being written; 0 for none.
	Current, Next Generation
	// Places are the ports whose cables lead to it, beginning with the one that
	// it was first found behind.
	Places []observed.Place

	due bool // a new generation is wanted
}

// Wanted is the generation that the port ought to have.
func (s *Entry) Wanted() Generation { return max(s.Current, s.Next) }

const (
	// entriesPerPlace bounds the entries of one location: a device can report
	// other GUIDs each time it is asked.
	entriesPerPlace = 4
	// placesPerEntry bounds the cables of one switch.
	placesPerEntry = 254
	// maxIDs bounds the ports that ever had a key: generations are never
	// forgotten, so that no key is given twice.
	maxIDs = 1 << 16
)

// ErrFull means that a book has no room for another port.
var ErrFull = fmt.Errorf("more than %d different ports have asked for an M_Key: no new one gets any", maxIDs)

// Book records which generation of its key each end port has, and the location where
// it got it. It contains no key. The zero Book is empty.
type Book struct {
	used    map[ID]Generation // the highest that was ever assigned to a port
	at      map[observed.Place][]*Entry
	ids     map[ID][]*Entry
	version uint64
	merged  uint64
}

// Version goes up with each change that a later run has to know of.
func (b *Book) Version() uint64 { return b.version }

// Merged counts the calls of Merge that entered something new.
func (b *Book) Merged() uint64 { return b.merged }

// Len is the number of ports that ever had a key.
func (b *Book) Len() int { return len(b.used) }

// Behind lists the entries behind a place, the latest first. It must not be
// changed.
func (b *Book) Behind(at observed.Place) []*Entry { return b.at[at] }

// Find returns the entry of a port behind a place; nil when it was never found there.
func (b *Book) Find(id ID, at observed.Place) *Entry {
	for _, s := range b.at[at] {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Of lists the entries of a port, the oldest first. It must not be changed.
func (b *Book) Of(id ID) []*Entry { return b.ids[id] }

// Entries lists every entry once, ordered by port and place.
func (b *Book) Entries() []*Entry {
	seen := make(map[*Entry]bool)
	var out []*Entry
	for _, list := range b.at {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, compareEntries)
	return out
}

// Add enters a port at a place where it was never found, and assigns the next
// generation to it. It returns ErrFull when the book has no room.
func (b *Book) Add(id ID, at observed.Place) (*Entry, error) {
	if b.at == nil {
		b.at, b.used, b.ids = make(map[observed.Place][]*Entry), make(map[ID]Generation), make(map[ID][]*Entry)
	}
	if _, known := b.used[id]; !known && len(b.used) >= maxIDs {
		return nil, ErrFull
	}
	s := &Entry{ID: id}
	b.raise(s)
	b.ids[id] = append(b.ids[id], s)
	b.Cable(s, at)
	return s, nil
}

// Cable records that a place leads to an entry; the caller has verified it.
func (b *Book) Cable(s *Entry, at observed.Place) {
	list := b.at[at]
	if len(list) > 0 && list[0] == s {
		return
	}
	b.version++
	list = slices.DeleteFunc(slices.Clone(list), func(x *Entry) bool { return x == s })
	list = slices.Insert(list, 0, s)
	for _, gone := range list[min(len(list), entriesPerPlace):] {
		gone.Places = slices.DeleteFunc(gone.Places, func(p observed.Place) bool { return p == at })
		if len(gone.Places) == 0 {
			b.ids[gone.ID] = slices.DeleteFunc(b.ids[gone.ID], func(x *Entry) bool { return x == gone })
		}
	}
	b.at[at] = list[:min(len(list), entriesPerPlace)]
	if !slices.Contains(s.Places, at) && len(s.Places) < placesPerEntry {
		s.Places = append(s.Places, at)
	}
}

// Renew marks an entry as due for another key; Begin assigns it.
func (b *Book) Renew(s *Entry) { s.due = true }

// Due reports whether an entry is due for another key.
func (b *Book) Due(s *Entry) bool { return s.due }

// Begin assigns the next generation to an entry that is due for it, unless one is
// on its way already.
func (b *Book) Begin(s *Entry) {
	if s.due && s.Next == 0 {
		b.raise(s)
	}
	s.due = false
}

func (b *Book) raise(s *Entry) {
	b.used[s.ID]++
	s.Next = b.used[s.ID]
	b.version++
}

// Confirm notes the generation that a port was seen to have.
func (b *Book) Confirm(s *Entry, g Generation) {
	if s.Current == g && (s.Next == 0 || s.Next == g) {
		if s.Next != 0 {
			s.Next = 0
			b.version++
		}
		return
	}
	s.Current = g
	if s.Next <= g {
		s.Next = 0
	}
	if b.used[s.ID] < g {
		b.used[s.ID] = g
	}
	b.version++
}

// Generations lists those that an entry may have, the likeliest first: the
// current one, the next, and further ones beyond every one that this book
// knows of, for a book that is older than the fabric.
func (b *Book) Generations(s *Entry, further int) []Generation {
	var out []Generation
	for _, g := range []Generation{s.Current, s.Next} {
		if g != 0 {
			out = append(out, g)
		}
	}
	for i := range further {
		out = append(out, b.used[s.ID]+Generation(i)+1)
	}
	return out
}

var errBook = errors.New("an entry needs a port, a place and a generation that was used")
