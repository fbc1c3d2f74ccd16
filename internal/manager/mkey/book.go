package mkey

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// Stand is an end port where it was met, and the keys that it may have there.
// Who shows the same GUIDs at another place is another stand, with a generation
// that nobody there has been shown yet.
type Stand struct {
	ID ID
	// Current is the generation that the port was seen to have, Next one that it
	// is being given; 0 for none.
	Current, Next Generation
	// Places are the ports whose cables lead to it, beginning with the one that
	// it was met behind.
	Places []observed.Place

	due bool // a new generation is wanted
}

// Wanted is the generation that the port ought to have.
func (s *Stand) Wanted() Generation { return max(s.Current, s.Next) }

const (
	// standsPerPlace bounds whom a place is remembered for: a device can say
	// another name each time it is asked.
	standsPerPlace = 4
	// placesPerStand bounds the cables of one switch.
	placesPerStand = 254
	// maxIDs bounds the ports that ever had a key: generations are never
	// forgotten, so that no key is given twice.
	maxIDs = 1 << 16
)

// ErrFull says that a book has no room for another port.
var ErrFull = fmt.Errorf("more than %d different ports have asked for an M_Key: no new one gets any", maxIDs)

// Book says which generation of its key each end port has, and where it stood
// when it got it. There is no key in it. The zero Book is empty.
type Book struct {
	used    map[ID]Generation // the highest that was ever meant for a port
	at      map[observed.Place][]*Stand
	ids     map[ID][]*Stand
	version uint64
}

// Version goes up with each change that a later run has to know of.
func (b *Book) Version() uint64 { return b.version }

// Len is the number of ports that ever had a key.
func (b *Book) Len() int { return len(b.used) }

// Behind lists who was met behind a place, the last first. It must not be
// changed.
func (b *Book) Behind(at observed.Place) []*Stand { return b.at[at] }

// Find is the stand of a port behind a place; nil when it was never met there.
func (b *Book) Find(id ID, at observed.Place) *Stand {
	for _, s := range b.at[at] {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Of lists the stands of a port, the first first. It must not be changed.
func (b *Book) Of(id ID) []*Stand { return b.ids[id] }

// Stands lists every stand once, ordered by port and place.
func (b *Book) Stands() []*Stand {
	seen := make(map[*Stand]bool)
	var out []*Stand
	for _, list := range b.at {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, compareStands)
	return out
}

// Meet enters a port at a place where it was never met, and means the next
// generation for it.
func (b *Book) Meet(id ID, at observed.Place) (*Stand, error) {
	if b.at == nil {
		b.at, b.used, b.ids = make(map[observed.Place][]*Stand), make(map[ID]Generation), make(map[ID][]*Stand)
	}
	if _, known := b.used[id]; !known && len(b.used) >= maxIDs {
		return nil, ErrFull
	}
	s := &Stand{ID: id}
	b.raise(s)
	b.ids[id] = append(b.ids[id], s)
	b.Cable(s, at)
	return s, nil
}

// Cable notes that a place leads to a stand; the caller has made sure of it.
func (b *Book) Cable(s *Stand, at observed.Place) {
	list := b.at[at]
	if len(list) > 0 && list[0] == s {
		return
	}
	b.version++
	list = slices.DeleteFunc(slices.Clone(list), func(x *Stand) bool { return x == s })
	list = slices.Insert(list, 0, s)
	for _, gone := range list[min(len(list), standsPerPlace):] {
		gone.Places = slices.DeleteFunc(gone.Places, func(p observed.Place) bool { return p == at })
		if len(gone.Places) == 0 {
			b.ids[gone.ID] = slices.DeleteFunc(b.ids[gone.ID], func(x *Stand) bool { return x == gone })
		}
	}
	b.at[at] = list[:min(len(list), standsPerPlace)]
	if !slices.Contains(s.Places, at) && len(s.Places) < placesPerStand {
		s.Places = append(s.Places, at)
	}
}

// Renew wants another key for a stand; Begin means it.
func (b *Book) Renew(s *Stand) { s.due = true }

// Due reports whether Renew wants another key for any stand.
func (b *Book) Due(s *Stand) bool { return s.due }

// Begin means the next generation for a stand that is due for it, unless one is
// on its way already.
func (b *Book) Begin(s *Stand) {
	if s.due && s.Next == 0 {
		b.raise(s)
	}
	s.due = false
}

func (b *Book) raise(s *Stand) {
	b.used[s.ID]++
	s.Next = b.used[s.ID]
	b.version++
}

// Confirm notes the generation that a port was seen to have.
func (b *Book) Confirm(s *Stand, g Generation) {
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

// Generations are those that a stand may have, the likeliest first: the
// current one, the next, and further ones beyond every one that this book
// knows of, for a book that is older than the fabric.
func (b *Book) Generations(s *Stand, further int) []Generation {
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

var errBook = errors.New("a stand needs a port, a place and a generation that was used")
