package observed

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// A switch that shares the table that is wanted of it shows what a switch shows that has one of
// its own, whatever blocks are read in whatever order, and changes nothing of what is wanted,
// nor of another snapshot that has the same switch.
func TestSharedLFT(t *testing.T) {
	const blocks, seed = 5, 11
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	info := smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 3, NodeGUID: 1, PortGUID: 1}
	shared, cloned := 0, 0
	for range 500 {
		f, own := NewFabric(), NewFabric()
		a, b := f.AddNode(info), own.AddNode(info)
		a.Switch.Info.LinearFDBCap, b.Switch.Info.LinearFDBCap = 49152, 49152
		size := 1 + r.IntN(blocks*smp.LIDsPerLinearBlock)
		wanted := slices.Repeat([]ib.PortNum{ib.PortNone}, blocks*smp.LIDsPerLinearBlock)
		for lid := range size {
			wanted[lid] = ib.PortNum(r.IntN(4))
		}
		before, table := slices.Clone(wanted), wanted[:size]
		absorb := func(block int, ports [smp.LIDsPerLinearBlock]ib.PortNum) {
			var data [mad.DataSize]byte
			x := smp.LinearForwardingTable{Ports: ports}
			if err := x.Encode(&data); err != nil {
				t.Fatal(err)
			}
			for _, n := range []*Node{a, b} {
				if err := n.Ports[0].Absorb(smp.AttrLinearForwardingTable, uint32(block), data[:]); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.Switch.ReserveLFT(size)
		for _, block := range r.Perm(1 + (size-1)/smp.LIDsPerLinearBlock) {
			absorb(block, smp.LinearBlock(table, block))
		}
		if r.IntN(4) == 0 { // one reads back differently
			ports := smp.LinearBlock(table, 0)
			ports[r.IntN(len(ports))]++
			absorb(0, ports)
		}
		a.Switch.ShareLFT(table)
		if a.Switch.sharesLFT {
			shared++
		}
		other := NewFabric()
		twin := other.Adopt(a)
		held := slices.Clone(twin.Switch.LFT)
		for range r.IntN(4) {
			was := a.Switch.sharesLFT
			block := r.IntN(blocks)
			ports := smp.LinearBlock(table, block)
			if r.IntN(2) == 0 {
				ports[r.IntN(len(ports))] = ib.PortNum(r.IntN(4))
			}
			absorb(block, ports)
			if was && !a.Switch.sharesLFT {
				cloned++
			}
		}
		if !slices.Equal(a.Switch.LFT, b.Switch.LFT) || !slices.Equal(a.Switch.LFTRead, b.Switch.LFTRead) {
			t.Fatalf("%v %v, and without sharing %v %v", a.Switch.LFT, a.Switch.LFTRead, b.Switch.LFT, b.Switch.LFTRead)
		}
		if !slices.Equal(wanted, before) {
			t.Fatal("what is wanted has changed")
		}
		if twin.Switch.sharesLFT && !slices.Equal(twin.Switch.LFT, held) {
			t.Fatal("another snapshot has changed")
		}
	}
	if shared < 100 || cloned < 50 {
		t.Errorf("%d of 500 shared a table, %d of them had one of their own again", shared, cloned)
	}
}
