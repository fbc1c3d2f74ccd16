package views

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/need"
)

// pastBytes is how large an answer about two moments may be.
const pastBytes = 300_000

// TestPastOf11664: how 11,664 hosts were at two moments, each of their cables with a load, is said in less than 300 kB,
// before it is compressed. It logs how long that takes.
func TestPastOf11664(t *testing.T) {
	need.Long(t, "a fabric of 11,664 hosts")
	facts := factsOf(swept(t, "fattree,radix=36,levels=3"))
	facts.Gather(resource.New(&policy.Policy{}), resource.Caller{Name: "uid 0", Tenant: resource.Provider})
	var m MapMaker
	if _, err := m.Whole(facts); err != nil {
		t.Fatal(err)
	}
	records := []*PastRecord{{}, {}}
	for i, l := range facts.Snapshot.Fabric.Links() {
		for j, r := range records {
			r.Cables = append(r.Cables, CableShare{Cable{l.A.Place(), l.B.Place()}.Ordered(), []int{0, 10, 20, 40, 60, 80, 100}[(i*(j+3))%7]})
		}
	}
	if n := len(records[0].Cables); n != 3*11664 {
		t.Fatalf("%d cables", n)
	}
	began := time.Now()
	var all []any
	for _, r := range records {
		x, err := m.PastMomentOf(facts, r)
		if err != nil || len(x.Busiest) != pastCables || x.Elsewhere != 0 {
			t.Fatalf("%+v, %v", x, err)
		}
		all = append(all, x)
	}
	all = append(all, facts.CablesBetween(records[0], records[1]))
	text, err := json.Marshal(all)
	t.Logf("%d bytes in %v", len(text), time.Since(began).Round(time.Millisecond))
	if err != nil || len(text) > pastBytes {
		t.Errorf("%d bytes, %v: want at most %d", len(text), err, pastBytes)
	}
}

// A load is a share of what the cable carries, rounded up; of a matrix what says something is kept.
func TestPastIsRounded(t *testing.T) {
	p := &observed.Port{InfoRead: true}
	p.Info.LinkWidthActive, p.Info.LinkSpeedActive = smp.LinkWidth4X, smp.LinkSpeedSDR // 8 Gb/s of data
	for carried, want := range map[float64]int{0: 0, 1: 1, 10e6: 1, 10e6 + 1: 2, 1e9: 100, 2e9: 100} {
		if got, known := PercentOf(p, carried); got != want || !known {
			t.Errorf("%v bytes a second are %d %%, want %d", carried, got, want)
		}
	}
	if _, known := PercentOf(&observed.Port{}, 1); known {
		t.Error("the rate of a port that was not read is known")
	}
	m := Matrix{Parties: []MatrixParty{{Name: "a", Ports: 2, Example: "x"}, {Name: "b", Ports: 1}}, Cells: []MatrixCell{
		{A: 0, B: 0, Talk: "none", Verdict: "kept-apart"}, {A: 0, B: 1, Talk: "none", Verdict: "kept-apart", Reason: "long"}, {A: 1, B: 1, Talk: "none", Verdict: "unknown", Reason: "long"},
	}}
	if k := m.Kept(); !k.Sparse || len(k.Cells) != 2 || k.Cells[1].Verdict != "unknown" || k.Cells[1].Reason != "" || k.Parties[0].Ports != 2 || k.Parties[0].Example != "" || m.Parties[0].Example == "" {
		t.Errorf("%+v", k)
	}
}

// Memberships that were gained and lost again between two moments are neither, and one that waits for consent is none.
func TestPastMembers(t *testing.T) {
	s := resource.New(&policy.Policy{})
	member := func(port ib.PortGUID, agreed bool) resource.Object {
		return &resource.Member{PKey: 1, Port: port, ByPartition: true, ByPort: agreed}
	}
	type edit struct {
		port          ib.PortGUID
		before, after resource.Object
	}
	var d PastDifference
	d.Members(s, func(yield func(string, resource.Object, resource.Object)) {
		for _, e := range []edit{
			{1, nil, member(1, true)},                            // gained
			{2, nil, member(2, true)}, {2, member(2, true), nil}, // for a while
			{3, nil, member(3, false)}, {3, member(3, false), nil}, // asked for
			{4, member(4, true), nil},                            // lost
			{5, member(5, true), nil}, {5, nil, member(5, true)}, // not for a while
			{6, nil, member(6, false)}, {6, nil, member(6, true)}, // asked for, and agreed
			{7, member(7, true), member(7, false)}, {8, nil, member(8, false)},
		} {
			yield(resource.MemberKey(1, e.port), e.before, e.after)
		}
		for port := ib.PortGUID(100); port < 300; port++ {
			yield(resource.MemberKey(1, port), nil, member(port, true))
		}
		yield(new(resource.File).Key(), nil, new(resource.File))
	})
	if d.GainedTotal != 202 || len(d.Gained) != pastMembers || d.LostTotal != 2 || d.Lost[0].Port != ib.PortGUID(4).String() || d.Lost[1].Port != ib.PortGUID(7).String() || !d.File {
		t.Errorf("gained %d, lost %+v, file %v", d.GainedTotal, d.Lost, d.File)
	}
}
