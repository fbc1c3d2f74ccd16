package observed

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// A chain of VendorDiag is what was read, from the block that DiagCode names, each
// block once, and says how it ends.
func TestDiagnosis(t *testing.T) {
	long := map[uint16]uint16{}
	for i := range uint16(MaxDiagBlocks) {
		long[i+1] = i + 2
	}
	for _, x := range []struct {
		name  string
		code  smp.DiagCode
		next  map[uint16]uint16
		chain []uint16
		ends  string
	}{
		{"well", 0, map[uint16]uint16{0: 0}, nil, ""},
		{"no chain", 0x0014, map[uint16]uint16{1: 0}, nil, ""},
		{"bit 15 without an error", 0x8011, map[uint16]uint16{1: 0}, nil, ""},
		{"one", 0x8014, map[uint16]uint16{1: 0, 2: 0}, []uint16{1}, ""},
		{"three", 0x8023, map[uint16]uint16{2: 9, 9: 1, 1: 0}, []uint16{2, 9, 1}, ""},
		{"block 0 first", 0x8003, map[uint16]uint16{0: 7, 7: 0}, []uint16{0, 7}, ""},
		{"not read", 0x8014, nil, nil, "block 1 was not read"},
		{"broken off", 0x8014, map[uint16]uint16{1: 0xFFFF}, []uint16{1}, "block 65535 was not read"},
		{"itself", 0x8014, map[uint16]uint16{1: 1}, []uint16{1}, "comes back to block 1"},
		{"a loop", 0x8014, map[uint16]uint16{1: 2, 2: 3, 3: 2}, []uint16{1, 2, 3}, "comes back to block 2"},
		{"without an end", 0x8014, long, []uint16{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, "cut after 16 blocks"},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := sickPort(t, x.code)
			for index, next := range x.next {
				block(t, p, uint32(index), next)
			}
			d := p.Diagnosis()
			var chain []uint16
			for _, b := range d.Blocks {
				chain = append(chain, b.Index)
				if b.DiagData[0] != byte(b.Index) || b.NextIndex != x.next[b.Index] {
					t.Errorf("block %d is %+v", b.Index, b.VendorDiag)
				}
			}
			if d.Code != x.code || !slices.Equal(chain, x.chain) || d.Ends() != x.ends {
				t.Errorf("code %#x, chain %v, ends %q; want %v, %q", uint16(d.Code), chain, d.Ends(), x.chain, x.ends)
			}
		})
	}
}

func sickPort(t *testing.T, code smp.DiagCode) *Port {
	t.Helper()
	n := NewFabric().AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 1})
	tell(t, &n.Ports[1], code)
	return &n.Ports[1]
}

func tell(t *testing.T, p *Port, code smp.DiagCode) {
	t.Helper()
	var data [mad.DataSize]byte
	info := smp.PortInfo{DiagCode: code}
	if err := info.Encode(&data); err != nil {
		t.Fatal(err)
	}
	if err := p.Absorb(smp.AttrPortInfo, 0, data[:]); err != nil {
		t.Fatal(err)
	}
}

func block(t *testing.T, p *Port, index uint32, next uint16) {
	t.Helper()
	var data [mad.DataSize]byte
	v := smp.VendorDiag{NextIndex: next, DiagData: [smp.VendorDiagDataSize]byte{byte(index)}}
	if err := v.Encode(&data); err != nil {
		t.Fatal(err)
	}
	if err := p.Absorb(smp.AttrVendorDiag, index, data[:]); err != nil {
		t.Fatal(err)
	}
}

// Blocks are about one trouble: with another DiagCode they are gone, and so is one
// that was doubted. What a device can make a snapshot keep is bounded, and another
// snapshot that has the same node keeps its own.
func TestDiagnosisIsKeptApart(t *testing.T) {
	p := sickPort(t, 0x8014)
	block(t, p, 1, 5)
	tell(t, p, 0x8014)
	if len(p.VendorDiag) != 1 {
		t.Error("the same DiagCode again, and the blocks are gone")
	}
	other := &NewFabric().Adopt(p.Node).Ports[1]
	block(t, other, 5, 0)
	other.MarkUnread(smp.AttrVendorDiag, 1)
	if len(p.VendorDiag) != 1 || len(other.VendorDiag) != 1 || p.Diagnosis().Next != 5 || other.Diagnosis().Next != 1 {
		t.Errorf("one snapshot has %v, the other %v", p.VendorDiag, other.VendorDiag)
	}
	tell(t, p, 0x8013)
	if p.VendorDiag != nil || len(other.VendorDiag) != 1 {
		t.Errorf("after another DiagCode: %v and %v", p.VendorDiag, other.VendorDiag)
	}
	for i := range uint32(MaxDiagBlocks) {
		block(t, p, i, uint16(i+1))
	}
	var data [mad.DataSize]byte
	if err := p.Absorb(smp.AttrVendorDiag, MaxDiagBlocks, data[:]); err == nil || !strings.Contains(err.Error(), "16 others") {
		t.Errorf("block 17: %v", err)
	}
	if err := p.Absorb(smp.AttrVendorDiag, 1<<16, data[:]); err == nil || len(p.VendorDiag) != MaxDiagBlocks {
		t.Errorf("block 65536: %v", err)
	}
}
