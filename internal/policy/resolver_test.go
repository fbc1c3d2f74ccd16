package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
)

var selectors = []string{
	"ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF", "port:11", "port:31", "port:999", fmt.Sprintf("port:%x", uint64(aliasGUID)), "node:10", "node:888",
	"is:red-2", "is:nobody", "like:red-*", "like:*-1", "like:none*", "group:a", "group:b",
}

const aliasGUID = 0x0200_0000_0000_0001

// alter changes a policy in place, as somebody does who edits it: most of it
// stays.
func alter(r *rand.Rand, p *Policy) {
	any := func() Member {
		return Member{Selector: sel(selectors[r.IntN(len(selectors))]), Membership: Membership(1 + r.IntN(3)), Index0: r.IntN(4) == 0}
	}
	part := &p.Partitions[r.IntN(len(p.Partitions))]
	if part.Immutable {
		part.Members, part.Immutable = slices.Clone(part.Members), false
	}
	switch n := len(part.Members); r.IntN(13) {
	case 0, 1, 2:
		part.Members = append(part.Members, any())
	case 3, 4:
		if n > 0 {
			part.Members[r.IntN(n)] = any()
		}
	case 5:
		if n > 0 {
			part.Members = slices.Delete(part.Members, n-1, n)
		}
	case 6:
		g := &p.Groups[r.IntN(len(p.Groups))]
		g.Selectors = nil
		for range r.IntN(3) {
			g.Selectors = append(g.Selectors, sel(selectors[r.IntN(len(selectors)-2)]))
		}
	case 7:
		p.Default = []Membership{Limited, Full, None}[r.IntN(3)]
	case 8:
		p.AllowBoth = !p.AllowBoth
	case 10: // an alias goes to another port
		p.Aliases = []PortAliases{{Port: []ib.PortGUID{0x11, 0x31, 0x777}[r.IntN(3)], GUIDs: []ib.PortGUID{aliasGUID}}}
	case 11:
		p.Apart = Apart([]GUIDRange{{ib.PortGUID(r.IntN(0x40)), ib.PortGUID(r.IntN(0x40))}}, nil)
	case 12: // the list is another one, which nobody changes from now on
		part.Members, part.Immutable = append(slices.Clone(part.Members), any()), true
		return
	case 9: // some lines were put in: positions move, and so do numbers
		for i := range p.Partitions {
			p.Partitions[i].Pos.Line += 3
			for j := range p.Partitions[i].Members {
				p.Partitions[i].Members[j].Pos.Line += 3
			}
		}
		a, b := &p.Partitions[0], part
		a.PKey, b.PKey = b.PKey, a.PKey
	}
}

// A Resolver that has seen other policies says what one does that has not.
func TestResolverForgetsNothing(t *testing.T) {
	reused := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := &Policy{Default: Limited, Groups: []Group{{Name: "a"}, {Name: "b", Selectors: []Selector{sel("port:21")}}}}
		for i := range 5 {
			p.Partitions = append(p.Partitions, Partition{Name: fmt.Sprint("p", i), PKey: ib.PKeyBase(0x10 + i)})
		}
		if seed%2 == 0 {
			p.Partitions = append(p.Partitions, Partition{Name: DefaultName, PKey: ib.PKeyBaseDefault})
		}
		ports := fabric()
		if seed%5 == 0 {
			ports = append(ports, EndPort{PortGUID: 0x31, NodeGUID: 0x50, PortNum: 1, Description: "red-9", NodeType: ib.NodeCA})
		}
		kept := NewResolver(ports)
		for step := range 40 {
			alter(r, p)
			want, err := p.Resolve(ports, nil)
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			reused += len(kept.known)
			got, err := kept.Resolve(p, nil)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("seed %d, step %d: %v (-fresh +kept)\n%s", seed, step, err, diff)
			}
		}
	}
	if reused == 0 {
		t.Error("nothing was ever known from before")
	}
}

// A policy that is in error leaves nothing behind.
func TestResolverAfterAnError(t *testing.T) {
	kept := NewResolver(fabric())
	good := &Policy{Default: Limited, Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full port:11")}}}
	bad := &Policy{Default: Limited, Partitions: []Partition{
		{Name: "a", PKey: 1, Members: members("limited ALL", "full group:none")}, {Name: "b", PKey: 2},
	}}
	for range 2 {
		want, err := good.Resolve(fabric(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := kept.Resolve(good, nil)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%v\n%s", err, diff)
		}
		if _, err := kept.Resolve(bad, nil); err == nil {
			t.Fatal("no error")
		}
	}
}
