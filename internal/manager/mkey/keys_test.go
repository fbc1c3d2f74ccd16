package mkey

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// A manager that comes to another port finds the key of that port in its book: at
// its own place every key is tried, and nowhere else.
func TestManagersOwnPort(t *testing.T) {
	book := new(Book)
	id, at := ID{Node: 7, Port: 8}, observed.Place{Node: 1, Port: 2}
	s, err := book.Add(id, at)
	if err != nil {
		t.Fatal(err)
	}
	k := Keys{Ring: NewRing([SecretSize]byte{1}), Book: book}
	if got := k.Behind(nil); k.Find(id, observed.Place{}) != s || !slices.Contains(got, k.Ring.MKey(id, s.Next)) {
		t.Errorf("a key that another manager may have written is not tried at the own port: %d keys", len(got))
	}
	elsewhere, err := book.Add(id, observed.Place{Node: 3, Port: 4})
	if err != nil {
		t.Fatal(err)
	}
	book.Confirm(s, s.Wanted())
	if k.Find(id, observed.Place{}) != s || elsewhere == s {
		t.Error("a key that may have been written elsewhere goes before the one that is in force")
	}
	if got := k.Behind(nil); !slices.Contains(got, k.Ring.MKey(id, s.Current)) {
		t.Errorf("at the manager's own port: %d keys, and not that of the port", len(got))
	}
	if k.Find(id, observed.Place{}) != s {
		t.Error("the stand of the manager's own port is not found")
	}
	if got := k.Behind(&observed.Port{Node: new(observed.Node), Num: 3}); len(got) != 0 {
		t.Errorf("behind another port: %d keys", len(got))
	}
}

// Managers that share a book are each at the zero Place in it: the own port is shown its own
// key first, and never that of another manager's port, for which nobody would answer.
func TestManagersOwnPortInASharedBook(t *testing.T) {
	book := new(Book)
	own, other := ID{Node: 7, Port: 8}, ID{Node: 5, Port: 6}
	s, err := book.Add(own, observed.Place{Node: 1, Port: 2})
	if err != nil {
		t.Fatal(err)
	}
	x, err := book.Add(other, observed.Place{})
	if err != nil {
		t.Fatal(err)
	}
	book.Confirm(s, s.Wanted())
	book.Confirm(x, x.Wanted())
	k := Keys{Ring: NewRing([SecretSize]byte{1}), Book: book, Self: own}
	got := k.Behind(nil)
	if len(got) == 0 || got[0] != k.Ring.MKey(own, s.Current) || slices.Contains(got, k.Ring.MKey(other, x.Current)) {
		t.Errorf("at the own port %v, want %v first and not %v", got, k.Ring.MKey(own, s.Current), k.Ring.MKey(other, x.Current))
	}
	k.Self = ID{}
	if got := k.Behind(nil); !slices.Contains(got, k.Ring.MKey(other, x.Current)) {
		t.Error("where it is not known which port it is, not every key is tried")
	}
}
