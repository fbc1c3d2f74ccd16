package mkey

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// TestDeclared: behind each port of a list of cables belongs the end port that is cabled to it: of a
// switch its port 0, whatever port the cable is in.
func TestDeclared(t *testing.T) {
	n := topology.Demo()
	list := cables.Of(n)
	declared := Declared(func() *cables.List { return list })
	switches, hosts := 0, 0
	for _, x := range n.Nodes {
		for i := range x.Ports {
			peer := x.Ports[i].Peer
			got, ok := declared(observed.Place{Node: x.GUID, Port: ib.PortNum(i)})
			if peer == nil {
				if ok || got != (ID{}) {
					t.Errorf("%s port %d leads nowhere: %v", x.Description, i, got)
				}
				continue
			}
			want := ID{Node: peer.GUID, Port: peer.Ports[x.Ports[i].PeerPort].GUID}
			if peer.Type == ib.NodeSwitch {
				want.Port = peer.Ports[0].GUID
				switches++
			} else {
				hosts++
			}
			if !ok || got != want {
				t.Errorf("behind %s port %d: %v, %v; want %v", x.Description, i, got, ok, want)
			}
		}
	}
	if switches == 0 || hosts == 0 {
		t.Errorf("%d cables to switches, %d to hosts", switches, hosts)
	}
	if _, ok := Declared(func() *cables.List { return nil })(observed.Place{Node: n.Nodes[0].GUID, Port: 1}); ok {
		t.Error("somebody is declared without a list")
	}
}

// TestLeftKeysAreDueAgain: keys that were left as they are, because the book is not kept yet, are due once
// it is kept; what was due already stays so.
func TestLeftKeysAreDueAgain(t *testing.T) {
	for _, x := range []struct{ due, abandoned, want bool }{{false, false, false}, {false, true, true}, {true, false, true}, {true, true, true}} {
		s := newSite()
		if x.abandoned {
			if _, err := s.Want(0, s.f, s.f.EndPorts(), guard); err != nil {
				t.Fatal(err)
			}
			if s.Abandon(); s.Kept != s.Config.Book.Version() || s.Kept == 0 {
				t.Errorf("left at version %d of %d", s.Kept, s.Config.Book.Version())
			}
		}
		s.Due = x.due
		s.Keep(77)
		if s.Due != x.want || s.Kept != 77 {
			t.Errorf("due %v, left %v: due %v at version %d then", x.due, x.abandoned, s.Due, s.Kept)
		}
		if s.Due = false; x.abandoned {
			if s.Keep(78); s.Due {
				t.Error("due a second time")
			}
		}
	}
}

// TestOnlyGuardsConfirm: the generation that a port shows counts where it guards it, and no other does.
func TestOnlyGuardsConfirm(t *testing.T) {
	for _, x := range []struct {
		name    string
		show    func(s *site, p *observed.Port, e *Entry)
		current Generation
	}{
		{"its key, guarded", func(s *site, p *observed.Port, e *Entry) {
			p.Key = s.Config.Ring.MKey(e.ID, e.Wanted())
			p.Info.MKey, p.Info.MKeyProtectBits = p.Key, guard.Bits
		}, 1},
		{"its key, not guarded", func(s *site, p *observed.Port, e *Entry) { p.Key = s.Config.Ring.MKey(e.ID, e.Wanted()) }, 0},
		{"another key", func(s *site, p *observed.Port, e *Entry) {
			p.Key = 0x1234
			p.Info.MKey, p.Info.MKeyProtectBits = p.Key, guard.Bits
		}, 0},
		{"no key", func(*site, *observed.Port, *Entry) {}, 0},
	} {
		s := newSite()
		if _, err := s.Want(0, s.f, s.f.EndPorts(), guard); err != nil {
			t.Fatal(err)
		}
		e := s.find(s.red)
		x.show(s, s.red, e)
		if _, err := s.Want(time.Second, s.f, s.f.EndPorts(), guard); err != nil {
			t.Fatal(err)
		}
		if e.Current != x.current {
			t.Errorf("%s: generation %d by the book, want %d", x.name, e.Current, x.current)
		}
	}
}
