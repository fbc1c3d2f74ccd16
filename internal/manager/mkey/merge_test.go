package mkey

import (
	"errors"
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// A standby has the book of the master: who was found where, and the later generation of
// each port, whichever of the two has it. To hear the same again changes nothing.
func TestMerge(t *testing.T) {
	a, b, c := observed.Place{Node: 10, Port: 1}, observed.Place{Node: 10, Port: 2}, observed.Place{Node: 11, Port: 1}
	var master, standby Book
	first := meet(t, &master, ID{1, 2}, a)
	master.Confirm(first, first.Next)
	master.Renew(first)
	master.Begin(first) // generation 2 is on its way
	moved := meet(t, &master, ID{3, 4}, b)
	master.Confirm(moved, moved.Next)
	master.Cable(moved, c)
	impostor := meet(t, &master, ID{5, 6}, c) // found last behind c
	master.Confirm(impostor, impostor.Next)

	old := meet(t, &standby, ID{1, 2}, a)
	standby.Confirm(old, 1)
	ahead := meet(t, &standby, ID{3, 4}, b)
	standby.Confirm(ahead, 7)
	own := meet(t, &standby, ID{8, 9}, observed.Place{Node: 12, Port: 3})
	if err := standby.Merge(&master); err != nil {
		t.Fatal(err)
	}
	if old.Current != 1 || old.Next != 2 {
		t.Errorf("generation %d, next %d: want those of the master, 1 and 2", old.Current, old.Next)
	}
	if ahead.Current != 7 {
		t.Errorf("generation %d: want 7, which is later than the master's", ahead.Current)
	}
	if s := standby.Find(ID{5, 6}, c); s == nil || s.Current != 1 || standby.Behind(c)[0] != s || standby.Find(ID{3, 4}, c) != ahead {
		t.Errorf("behind %v: %v", c, standby.Behind(c))
	}
	if standby.Find(ID{8, 9}, observed.Place{Node: 12, Port: 3}) != own || standby.used[ID{3, 4}] != 7 || standby.used[ID{1, 2}] != 2 {
		t.Error("what only the standby knows is lost, or a generation went back")
	}
	version, before, merged := standby.Version(), flat(&standby), standby.Merged()
	if merged != 1 {
		t.Errorf("%d merges brought something, want 1", merged)
	}
	if err := standby.Merge(&master); err != nil || standby.Version() != version || standby.Merged() != merged || !reflect.DeepEqual(flat(&standby), before) {
		t.Errorf("the same again: %v, version %d, was %d", err, standby.Version(), version)
	}
	var empty Book
	if err := empty.Merge(&master); err != nil || !reflect.DeepEqual(flat(&empty), flat(&master)) {
		t.Errorf("an empty book: %v", err)
	}
}

// Each thing that another book knows and this one does not makes it another version, alone as
// with others: who keeps books writes those with another version only.
func TestMergeSaysThatItBroughtSomething(t *testing.T) {
	at := observed.Place{Node: 10, Port: 1}
	for name, news := range map[string]func(b *Book, s *Entry){
		"a generation that was used": func(b *Book, _ *Entry) { b.used[ID{1, 2}] = 9 },
		"a port":                     func(b *Book, _ *Entry) { meet(t, b, ID{3, 4}, observed.Place{Node: 11, Port: 1}) },
		"a generation in force":      func(b *Book, s *Entry) { b.Confirm(s, s.Next) },
		"nothing":                    func(*Book, *Entry) {},
	} {
		var master, standby Book
		s := meet(t, &master, ID{1, 2}, at)
		if err := standby.Merge(&master); err != nil {
			t.Fatal(err)
		}
		news(&master, s)
		version, merged := standby.Version(), standby.Merged()
		if err := standby.Merge(&master); err != nil {
			t.Fatal(err)
		}
		if brought := standby.Version() != version; brought != (name != "nothing") || (standby.Merged() != merged) != brought {
			t.Errorf("%s: version %d, was %d; %d merges brought something, were %d", name, standby.Version(), version, standby.Merged(), merged)
		}
		if !reflect.DeepEqual(flat(&standby), flat(&master)) {
			t.Errorf("%s: the books differ", name)
		}
	}
}

// A full book takes the later generations of the ports that it has, and refuses one port more.
func TestMergeIntoAFullBook(t *testing.T) {
	var full, known, more Book
	meet(t, &full, ID{1, 1}, observed.Place{Node: 1, Port: 1})
	for i := len(full.used); i < maxIDs; i++ {
		full.used[ID{2, ib.PortGUID(i)}] = 1
	}
	s := meet(t, &known, ID{1, 1}, observed.Place{Node: 1, Port: 1})
	known.Confirm(s, 5)
	if err := full.Merge(&known); err != nil || full.used[ID{1, 1}] != 5 {
		t.Errorf("what it knows: %v, generation %d", err, full.used[ID{1, 1}])
	}
	meet(t, &more, ID{3, 3}, observed.Place{Node: 1, Port: 2})
	if err := full.Merge(&more); !errors.Is(err, ErrFull) || full.Find(ID{3, 3}, observed.Place{Node: 1, Port: 2}) != nil {
		t.Errorf("one more: %v", err)
	}
}
