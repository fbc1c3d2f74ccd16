package mkey

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// FurtherGenerations is how many generations beyond those of the book are tried
// when a fabric is looked for that is newer than its book (ibwarden keys
// recover): as many as a port was given since the book was kept.
const FurtherGenerations = 16

// Foreign are keys that are not ours and may be in force: those of a manager
// that was here before. They are shown, and replaced.
type Foreign struct {
	// Everywhere are keys that any port may have.
	Everywhere []ib.MKey
	// Of are keys of single ports.
	Of map[ib.PortGUID]ib.MKey
	// Neighbor says which port is cabled to which. A switch port goes by the GUID of
	// port 0.
	Neighbor map[PortOf]ib.PortGUID
}

// PortOf is a port as OpenSM names it: by the GUID of the end port that guards it,
// and a number.
type PortOf struct {
	GUID ib.PortGUID
	Port ib.PortNum
}

// behind is the port that is cabled to from; 0 where that is not known.
func (f *Foreign) behind(from *observed.Port) ib.PortGUID {
	if from == nil {
		return 0
	}
	return f.Neighbor[PortOf{from.Agent().GUID, from.Num}]
}

// Any reports whether there is any foreign key.
func (f *Foreign) Any() bool { return len(f.Everywhere)+len(f.Of) > 0 }

// Keys says which keys requests to a port may carry: those that it may have where
// it stands, and none that belongs anywhere else. It is for sweep.Options.
type Keys struct {
	Ring *Ring
	Book *Book
	// Foreign may be empty.
	Foreign Foreign
	// Declared returns the port that belongs behind a place, by a list of cables; nil
	// without one. Entries found there before count all the same.
	Declared func(observed.Place) (ID, bool)
	// Self is the port that requests leave by, as far as its own machine tells; another
	// manager may have entered it elsewhere.
	Self ID
	// Further is how many generations beyond the book's are tried.
	Further int
}

// IDOf names an end port.
func IDOf(p *observed.Port) ID { return ID{p.Node.GUID(), p.GUID} }

// PlaceOf is the place of the device behind from; the zero Place for the manager's own
// port, when from is nil.
func PlaceOf(from *observed.Port) observed.Place {
	if from == nil {
		return observed.Place{}
	}
	return observed.Place{Node: from.Node.GUID(), Port: from.Num}
}

// Behind lists the keys to send to the other end of from's cable, in the order in which
// they are worth trying. For the manager's own port they are all of its keys, wherever it
// was entered, or all keys if it is not known which port it is: no one else sees those
// requests.
func (k *Keys) Behind(from *observed.Port) []ib.MKey {
	at := PlaceOf(from)
	var out []ib.MKey
	if id, ok := k.declared(at); ok {
		if s := k.Find(id, at); s != nil {
			out = k.appendKeys(out, s)
		}
	}
	for _, s := range k.Book.Behind(at) {
		// Each manager enters its own port at the zero Place: in a shared book others are there.
		if from != nil || k.Self == (ID{}) || k.isSelf(s.ID) {
			out = k.appendKeys(out, s)
		}
	}
	if from == nil {
		for _, s := range k.Book.Entries() {
			if k.Self == (ID{}) || k.isSelf(s.ID) {
				for _, g := range k.Book.Generations(s, k.Further) {
					out = append(out, k.Ring.MKey(s.ID, g))
				}
			}
		}
		for _, g := range slices.Sorted(maps.Keys(k.Foreign.Of)) {
			if k.Self.Port == 0 || k.Self.Port == g {
				out = append(out, k.Foreign.Of[g])
			}
		}
	}
	if key := k.Foreign.Of[k.Foreign.behind(from)]; key != 0 {
		out = append(out, key)
	}
	return k.finish(out)
}

// Of lists the keys to try for an end port that was found at the other end of from's
// cable: only foreign ones if it was not entered there before.
func (k *Keys) Of(p, from *observed.Port) []ib.MKey {
	var out []ib.MKey
	if s := k.Find(IDOf(p), PlaceOf(from)); s != nil {
		out = k.appendKeys(out, s)
	}
	if key := k.Foreign.Of[p.GUID]; key != 0 && (from == nil || k.Foreign.Neighbor == nil || k.Foreign.behind(from) == p.GUID) {
		out = append(out, key)
	}
	return k.finish(out)
}

func (k *Keys) appendKeys(out []ib.MKey, s *Entry) []ib.MKey {
	for _, g := range k.Book.Generations(s, k.Further) {
		if key := k.Ring.MKey(s.ID, g); !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// isSelf reports whether an end port is that of this machine.
func (k *Keys) isSelf(id ID) bool {
	return k.Self != ID{} && (k.Self.Node == 0 || k.Self.Node == id.Node) && (k.Self.Port == 0 || k.Self.Port == id.Port)
}

func (k *Keys) declared(at observed.Place) (ID, bool) {
	if k.Declared == nil {
		return ID{}, false
	}
	return k.Declared(at)
}

// Find is the entry of a port behind a place: where it was found there, or where it was
// found elsewhere and a list of cables has it there, or where it is the manager's own.
func (k *Keys) Find(id ID, at observed.Place) *Entry {
	if s := k.Book.Find(id, at); s != nil {
		return s
	}
	stands := k.Book.Of(id)
	if at == (observed.Place{}) { // the manager's own port, whichever it is, is at its own place
		// One that was to be written only, as far as this book knows, may have been: it was
		// kept, or another manager told of it, before.
		for _, has := range []func(*Entry) bool{
			func(s *Entry) bool { return s.Current != 0 }, func(s *Entry) bool { return s.Next != 0 || k.Further > 0 },
		} {
			if i := slices.IndexFunc(stands, has); i >= 0 {
				return stands[i]
			}
		}
		return nil
	}
	if want, ok := k.declared(at); !ok || want != id {
		return nil
	}
	here := func(p observed.Place) bool { want, ok := k.declared(p); return ok && want == id }
	i := slices.IndexFunc(stands, func(s *Entry) bool { return slices.ContainsFunc(s.Places, here) })
	if i < 0 { // it was moved, and a person has said so
		i = slices.IndexFunc(stands, func(s *Entry) bool { return s.Current != 0 })
	}
	if i < 0 {
		return nil
	}
	return stands[i]
}

func (k *Keys) finish(out []ib.MKey) []ib.MKey {
	for _, key := range k.Foreign.Everywhere {
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// Generation is the generation of an entry whose key this is; 0 for none.
func (k *Keys) Generation(s *Entry, key ib.MKey) Generation {
	for _, g := range k.Book.Generations(s, k.Further) {
		if k.Ring.MKey(s.ID, g) == key {
			return g
		}
	}
	return 0
}
