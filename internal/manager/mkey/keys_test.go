package mkey

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
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

// keysAt is what is sent to where a port is found, and to whatever is behind a place.
type keysAt struct{ of, behind bool }

// A key of another manager's, of one port, goes to the place where that manager had the port and
// to no other: who claims the port's GUID elsewhere is not sent it, nor is what stands elsewhere
// before it has said anything. Where that manager left no word of places, the GUID decides; keys
// for every port go everywhere.
func TestForeignKeysStayWhereTheyWere(t *testing.T) {
	const key, everywhere ib.MKey = 0xF0, 0xF1
	victim := &observed.Port{GUID: 8, Node: &observed.Node{Info: smp.NodeInfo{NodeGUID: 7}}}
	other := &observed.Port{GUID: 9, Node: victim.Node}
	leaf := &observed.Node{Info: smp.NodeInfo{NodeGUID: 1}, Switch: new(observed.Switch)}
	leaf.Ports = make([]observed.Port, 4)
	for i := range leaf.Ports {
		leaf.Ports[i].Node, leaf.Ports[i].Num, leaf.Ports[i].GUID = leaf, ib.PortNum(i), 1
	}
	home, elsewhere, unknown := &leaf.Ports[1], &leaf.Ports[2], &leaf.Ports[3]
	places := map[PortOf]ib.PortGUID{{GUID: 1, Port: 1}: 8, {GUID: 1, Port: 2}: 9}
	for _, x := range []struct {
		name string
		from *observed.Port
		p    *observed.Port
		in   map[PortOf]ib.PortGUID
		self ib.PortGUID
		want keysAt
	}{
		{"at its place", home, victim, places, 0, keysAt{true, true}},
		{"its GUID at the place of another", elsewhere, victim, places, 0, keysAt{}},
		{"its GUID at a place of nobody", unknown, victim, places, 0, keysAt{}},
		{"another at its place", home, other, places, 0, keysAt{false, true}},
		{"no places are known", unknown, victim, nil, 0, keysAt{true, false}},
		{"another, no places are known", home, other, nil, 0, keysAt{}},
		{"the manager's own port", nil, victim, places, 8, keysAt{true, true}},
		{"another as the manager's own port", nil, other, places, 9, keysAt{}},
		{"the manager's own port, which is not known", nil, victim, places, 0, keysAt{true, true}},
	} {
		k := Keys{
			Ring: NewRing([SecretSize]byte{1}), Book: new(Book), Self: ID{Port: x.self},
			Foreign: Foreign{Everywhere: []ib.MKey{everywhere}, Of: map[ib.PortGUID]ib.MKey{8: key}, Neighbor: x.in},
		}
		of, behind := k.Of(x.p, x.from), k.Behind(x.from)
		if got := (keysAt{slices.Contains(of, key), slices.Contains(behind, key)}); got != x.want {
			t.Errorf("%s: sent to the port, and to what is there: %v, want %v", x.name, got, x.want)
		}
		if !slices.Contains(of, everywhere) || !slices.Contains(behind, everywhere) {
			t.Errorf("%s: a key for every port is not tried: %v, %v", x.name, of, behind)
		}
	}
}

// A key of ours goes to the port that it was given, where that was found or where the list of
// cables has it: to no other port there, and to it nowhere else.
func TestKeysGoWhereTheyBelong(t *testing.T) {
	id, impostor := ID{Node: 7, Port: 8}, ID{Node: 7, Port: 9}
	leaf := &observed.Node{Info: smp.NodeInfo{NodeGUID: 1}, Switch: new(observed.Switch), Ports: make([]observed.Port, 4)}
	for i := range leaf.Ports {
		leaf.Ports[i].Node, leaf.Ports[i].Num = leaf, ib.PortNum(i)
	}
	found, declared, elsewhere := &leaf.Ports[1], &leaf.Ports[2], &leaf.Ports[3]
	book := new(Book)
	s, err := book.Add(id, PlaceOf(found))
	if err != nil {
		t.Fatal(err)
	}
	book.Confirm(s, s.Wanted())
	port := func(id ID) *observed.Port {
		return &observed.Port{GUID: id.Port, Node: &observed.Node{Info: smp.NodeInfo{NodeGUID: id.Node}}}
	}
	lists := map[string]func(observed.Place) (ID, bool){
		"no list": nil,
		"a list":  func(at observed.Place) (ID, bool) { return id, at == PlaceOf(declared) },
	}
	for name, list := range lists {
		k := Keys{Ring: NewRing([SecretSize]byte{1}), Book: book, Declared: list}
		key := k.Ring.MKey(id, s.Current)
		for from, want := range map[*observed.Port]bool{found: true, declared: list != nil, elsewhere: false} {
			if got := slices.Contains(k.Of(port(id), from), key); got != want {
				t.Errorf("%s: the port behind %v is sent its key: %v, want %v", name, PlaceOf(from), got, want)
			}
			if got := slices.Contains(k.Behind(from), key); got != want {
				t.Errorf("%s: what is behind %v is sent the key: %v, want %v", name, PlaceOf(from), got, want)
			}
			if slices.Contains(k.Of(port(impostor), from), key) {
				t.Errorf("%s: another port behind %v is sent the key", name, PlaceOf(from))
			}
		}
		if g := k.Generation(s, key); g != s.Current || k.Generation(s, key+1) != 0 {
			t.Errorf("generation %d of the key, want %d, and of another 0", g, s.Current)
		}
	}
}

// Foreign keys are there when there is one of either kind.
func TestAnyForeignKey(t *testing.T) {
	for _, x := range []struct {
		f    Foreign
		want bool
	}{{Foreign{}, false}, {Foreign{Everywhere: []ib.MKey{1}}, true}, {Foreign{Of: map[ib.PortGUID]ib.MKey{1: 1}}, true}} {
		if x.f.Any() != x.want {
			t.Errorf("%+v: any %v, want %v", x.f, x.f.Any(), x.want)
		}
	}
}
