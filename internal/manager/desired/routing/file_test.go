package routing

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// tablesOf are routes as a file has them.
func tablesOf(b *routingtest.Builder, r *graph.Routes) *observed.LFTs {
	t := &observed.LFTs{Owners: map[ib.LID]ib.PortGUID{}}
	for _, d := range b.Destinations {
		for i := range d.LMC.Count() {
			t.Owners[d.LID+ib.LID(i)] = d.Port.GUID
		}
	}
	for i, n := range b.Fabric.Switches() {
		s := observed.LFTSwitch{GUID: n.GUID(), Line: i + 1}
		for lid, port := range r.Linear[n.Index] {
			if port != ib.PortNone {
				s.Entries = append(s.Entries, observed.LFTEntry{LID: ib.LID(lid), Port: port})
			}
		}
		t.Switches = append(t.Switches, s)
	}
	return t
}

// A file of up*/down* routes gives these again; with cables cut and a part of its entries
// gone, everything that is connected is reached still, nothing goes round, and what works
// stays.
func TestFile(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b := routingtest.New(rng)
		b.LMC = ib.LMC(seed % 2)
		b.Irregular(rng, 3+rng.IntN(20), rng.IntN(30))
		in := b.Input(t, 8)
		first, err := graph.UpDown(in)
		if err != nil {
			t.Fatal(err)
		}
		in.File = tablesOf(b, first)
		same, err := fileTables(in)
		if err != nil || same.Notes != nil || same.Lanes != nil || fmt.Sprint(same.Linear) != fmt.Sprint(first.Linear) {
			t.Fatalf("seed %d: %v, other routes than those of the file, %v", seed, err, same.Notes)
		}
		lost := map[[2]uint64]bool{}
		for i := range in.File.Switches {
			s := &in.File.Switches[i]
			var kept []observed.LFTEntry
			for _, e := range s.Entries {
				if rng.IntN(8) == 0 {
					lost[[2]uint64{uint64(s.GUID), uint64(e.LID)}] = true
				} else {
					kept = append(kept, e)
				}
			}
			s.Entries = kept
		}
		for range rng.IntN(4) {
			s := b.Fabric.Switches()[rng.IntN(len(b.Fabric.Switches()))]
			if p := &s.Ports[1+rng.IntN(len(s.Ports)-1)]; p.IsTrained() && p.Peer.Node.Switch != nil {
				routingtest.Cut(p)
			}
		}
		broken := b.Input(t, 8)
		broken.File = in.File
		r, err := fileTables(broken)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		b.EachRoute(t, r, nil)
	}
}

// LIDs of a file stand for ports; a circle of the file stays for the judge to refuse; and
// what does not fit is told.
func TestWhatDoesNotFit(t *testing.T) {
	b := routingtest.New(nil)
	b.Torus(5, 1, 1)
	in := b.Input(t, 1)
	first, _ := graph.UpDown(in)
	good := tablesOf(b, first)
	// The same ports had other LIDs.
	moved := &observed.LFTs{Owners: map[ib.LID]ib.PortGUID{}}
	for lid, guid := range good.Owners {
		moved.Owners[lid+100] = guid
	}
	for _, s := range good.Switches {
		x := observed.LFTSwitch{GUID: s.GUID, Line: s.Line}
		for _, e := range s.Entries {
			x.Entries = append(x.Entries, observed.LFTEntry{LID: e.LID + 100, Port: e.Port})
		}
		moved.Switches = append(moved.Switches, x)
	}
	in.File = moved
	if r, err := fileTables(in); err != nil || fmt.Sprint(r.Linear) != fmt.Sprint(first.Linear) {
		t.Errorf("%v: LIDs of the file were not taken for their ports", err)
	}
	good.Switches = append(good.Switches, observed.LFTSwitch{GUID: 0xabc})
	good.Switches[0].GUID = 0xdef
	good.Owners[99] = 0x999
	in.File = good
	r, err := fileTables(in)
	if err != nil {
		t.Fatal(err)
	}
	told := strings.Join(r.Notes, "\n")
	for _, want := range []string{"2 of its switches are not in the subnet", "does not have 1 of the 5 switches", "1 of its ports are not in the subnet", "exits are filled in"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not told: %s", want, told)
		}
	}
	b.EachRoute(t, r, nil)
	for want, file := range map[string]*observed.LFTs{
		"no file of forwarding tables": nil,
		"none of the 5 switches":       {Switches: []observed.LFTSwitch{{GUID: 1}}},
		"the switch of line 7, switch 0,0: the exit for LID 0x1 is port 77, want 0 to": {Switches: []observed.LFTSwitch{{GUID: b.Fabric.Switches()[0].GUID(), Line: 7, Entries: []observed.LFTEntry{{LID: 1, Port: 77}}}}},
	} {
		in.File = file
		if _, err := fileTables(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Shortest paths of a ring deadlock on one lane; with two, pairs get layers.
func TestLayers(t *testing.T) {
	b := routingtest.New(nil)
	b.Torus(5, 1, 2)
	in := b.Input(t, 4)
	first, _ := graph.MinHop(in)
	in.File = tablesOf(b, first)
	r, err := fileTables(in)
	if err != nil || r.Lanes == nil || b.Judge(r, 4).Deadlock != nil || fmt.Sprint(r.Linear) != fmt.Sprint(first.Linear) {
		t.Errorf("%v: %+v", err, r.Lanes)
	}
	in.VLs = 1
	if r, err = fileTables(in); err != nil || b.Judge(r, 1).Deadlock == nil {
		t.Errorf("%v: the judge finds no circle on one lane", err)
	}
}
