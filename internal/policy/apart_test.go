package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

// Apart has each GUID of the ranges that is not excepted, in order, and IsApart
// finds each.
func TestApartAgainstAList(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var ranges []GUIDRange
		want := map[ib.PortGUID]bool{}
		for range r.IntN(5) {
			first := ib.PortGUID(r.IntN(40))
			last := first + ib.PortGUID(r.IntN(8))
			ranges = append(ranges, GUIDRange{first, last})
			for g := first; g <= last; g++ {
				want[g] = true
			}
		}
		var except []ib.PortGUID
		for range r.IntN(8) {
			g := ib.PortGUID(r.IntN(50))
			except = append(except, g)
			delete(want, g)
		}
		p := &Policy{Apart: Apart(ranges, except)}
		for g := range ib.PortGUID(60) {
			if p.IsApart(g) != want[g] {
				t.Fatalf("seed %d: %v without %v is %v: it says %v of %d", seed, ranges, except, p.Apart, p.IsApart(g), g)
			}
		}
		for i := range p.Apart {
			if p.Apart[i].Last < p.Apart[i].First || i > 0 && p.Apart[i].First <= p.Apart[i-1].Last {
				t.Fatalf("seed %d: %v is out of order", seed, p.Apart)
			}
		}
	}
	last := ^ib.PortGUID(0)
	if got := Apart([]GUIDRange{{last - 1, last}}, []ib.PortGUID{last}); !slices.Equal(got, []GUIDRange{{last - 1, last - 1}}) {
		t.Errorf("the last GUID taken away: %v", got)
	}
}

// A port that is apart is a member only where its GUID stands.
func TestOnlyItsGUIDMeansAPortThatIsApart(t *testing.T) {
	ports := []EndPort{
		{PortGUID: 1, NodeGUID: 0x10, NodeType: ib.NodeCA, Description: "red-1", SM: true, Switch: 0x99, SwitchPort: 1},
		{PortGUID: 2, NodeGUID: 0x20, NodeType: ib.NodeCA, Description: "red-2", Switch: 0x99, SwitchPort: 2},
		{PortGUID: 3, NodeGUID: 0x30, NodeType: ib.NodeCA, Description: "red-3", Switch: 0x99, SwitchPort: 3},
	}
	at := func(guid uint64) Selector {
		return Selector{Kind: SelectPlace, GUID: guid, At: Place{Switch: 0x99, Port: 2}}
	}
	p := &Policy{Default: Full, Apart: []GUIDRange{{2, 2}}, Groups: []Group{{Name: "g", Selectors: []Selector{sel("port:2"), sel("port:3")}}}}
	selectors := []Selector{sel("ALL"), sel("ALL_CAS"), sel("node:20"), sel("is:red-2"), sel("like:red-*"), sel("group:g"), at(0), sel("port:2"), at(2)}
	for i, s := range selectors {
		p.Partitions = append(p.Partitions, Partition{Name: fmt.Sprint(i), PKey: ib.PKeyBase(i + 1), Members: []Member{{Selector: s, Membership: Full}}})
		p.Trusted = []TrustedPorts{{Selector: s}}
		res, err := p.Resolve(ports, nil)
		if err != nil {
			t.Fatal(err)
		}
		part := res.Partitions[i]
		if _, in := slices.BinarySearch(part.Full, 2); in != s.Exact() {
			t.Errorf("%v: members %v", s, part.Full)
		}
		if slices.Contains(res.Trusted, 2) != s.Exact() {
			t.Errorf("trusted: %v: %v", s, res.Trusted)
		}
		dflt := res.Partitions[len(res.Partitions)-1]
		if !slices.Equal(dflt.Full, []ib.PortGUID{1, 3}) || !slices.Equal(dflt.Limited, []ib.PortGUID{2}) {
			t.Errorf("default partition: full %v, limited %v", dflt.Full, dflt.Limited)
		}
	}
}

// The same slice of a partition that is Immutable is not compared member by member,
// and another slice is.
func TestResolverKnowsTheSameSlice(t *testing.T) {
	list := members("full port:11")
	p := &Policy{Default: Limited, Partitions: []Partition{{Name: "a", PKey: 1, Members: list, Immutable: true}}}
	r := NewResolver(fabric())
	for _, want := range []ib.PortGUID{0x11, 0x31, 0x31} {
		res, err := r.Resolve(p, nil)
		if err != nil || !slices.Equal(res.Partitions[0].Full, []ib.PortGUID{want}) {
			t.Fatalf("%v, %v: want %v", res.Partitions[0].Full, err, want)
		}
		p.Partitions[0].Members = members("full port:31")
	}
}
