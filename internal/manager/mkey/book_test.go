package mkey

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

func meet(t *testing.T, b *Book, id ID, at observed.Place) *Entry {
	t.Helper()
	s, err := b.Add(id, at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Who comes with the GUIDs of another, somewhere else, gets no generation that
// the other has had or will have.
func TestEntriesShareNoGeneration(t *testing.T) {
	var b Book
	victim, here, there := ID{1, 2}, observed.Place{Node: 10, Port: 1}, observed.Place{Node: 10, Port: 2}
	v := meet(t, &b, victim, here)
	b.Confirm(v, v.Next)
	had := []Generation{v.Current}
	impostor := meet(t, &b, victim, there)
	if b.Find(victim, here) != v || b.Find(victim, there) != impostor || len(b.Of(victim)) != 2 {
		t.Fatal("stands are mixed up")
	}
	for range 20 {
		for _, s := range []*Entry{v, impostor} {
			if s.Next != 0 && slices.Contains(had, s.Next) {
				t.Fatalf("generation %d twice", s.Next)
			}
			if s.Next != 0 {
				had = append(had, s.Next)
				b.Confirm(s, s.Next)
			}
			b.Renew(s)
			b.Begin(s)
		}
	}
}

// A device that says another name each time it is asked is remembered for few of
// them, and a port that ever had a key never gets it again.
func TestBookIsBounded(t *testing.T) {
	var b Book
	at := observed.Place{Node: 10, Port: 1}
	for i := range maxIDs {
		meet(t, &b, ID{ib.NodeGUID(i + 1), 1}, at)
	}
	if _, err := b.Add(ID{maxIDs + 1, 1}, at); err != ErrFull {
		t.Errorf("error %v, want %v", err, ErrFull)
	}
	if n := len(b.Behind(at)); n != entriesPerPlace || len(b.Entries()) != entriesPerPlace {
		t.Errorf("%d remembered, %d stands", n, len(b.Entries()))
	}
	if s := meet(t, &b, ID{1, 1}, observed.Place{Node: 10, Port: 2}); s.Next != 2 {
		t.Errorf("a port whose stand was forgotten gets generation %d, want 2", s.Next)
	}
}

// A book that is written and read again is the same, and has no key in it.
func TestBookStays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var b Book
	for range 500 {
		id, at := ID{ib.NodeGUID(r.IntN(40) + 1), ib.PortGUID(r.IntN(2) + 1)}, observed.Place{Node: ib.NodeGUID(r.IntN(10)), Port: ib.PortNum(r.IntN(6))}
		if at.Node == 0 {
			at = observed.Place{}
		}
		s := b.Find(id, at)
		if s == nil {
			s = meet(t, &b, id, at)
		}
		switch r.IntN(4) {
		case 0:
			b.Confirm(s, s.Wanted())
		case 1:
			b.Renew(s)
			b.Begin(s)
		case 2:
			b.Cable(s, observed.Place{Node: ib.NodeGUID(r.IntN(10) + 1), Port: ib.PortNum(r.IntN(6))})
		}
	}
	data, err := json.Marshal(&b)
	if err != nil {
		t.Fatal(err)
	}
	var again Book
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(flat(&b), flat(&again)) || !reflect.DeepEqual(b.used, again.used) {
		t.Error("the book reads back otherwise")
	}
	for at := range b.at {
		for i, s := range b.Behind(at) {
			if len(s.Places) > 0 && again.Behind(at)[i].ID != s.ID {
				t.Errorf("%v: rank %d is another port", at, i)
			}
		}
	}
	for _, bad := range []string{
		`{}`, `{"version":2}`, `{"version":1,"ports":[{"node_guid":"0x1","port_guid":"0x2","current":1,"behind":["self"]}]}`,
		`{"version":1,"used":[{"node_guid":"0x1","port_guid":"0x2","generation":1}],"ports":[{"node_guid":"0x1","port_guid":"0x2","current":1,"behind":["x"]}]}`,
		`{"version":1,"used":[{"node_guid":"0x1","port_guid":"0x2","generation":1}],"ports":[{"node_guid":"0x1","port_guid":"0x2","behind":["self"]}]}`,
	} {
		if json.Unmarshal([]byte(bad), &again) == nil {
			t.Errorf("%s is read without an error", bad)
		}
	}
}

func flat(b *Book) (out []Entry) {
	for _, s := range b.Entries() {
		x := *s
		x.due = false
		out = append(out, x)
	}
	return out
}

// What was met behind a place may be shown there, and nowhere else, unless a
// list of cables says that it was moved.
func TestKeysAreForPlaces(t *testing.T) {
	var b Book
	k := Keys{Ring: NewRing(secret(3)), Book: &b}
	id, here, there := ID{1, 2}, observed.Place{Node: 10, Port: 1}, observed.Place{Node: 10, Port: 2}
	s := meet(t, &b, id, here)
	b.Confirm(s, 1)
	if k.Find(id, here) != s || k.Find(id, there) != nil || k.Find(ID{1, 3}, here) != nil {
		t.Error("found where it was not met")
	}
	k.Declared = func(at observed.Place) (ID, bool) { return id, at == there }
	if k.Find(id, there) != s || k.Find(ID{1, 3}, there) != nil {
		t.Error("not found where it is declared")
	}
}
