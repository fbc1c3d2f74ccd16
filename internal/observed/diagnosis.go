package observed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// keptVendorDiag is a chain of blocks. A sweep asks for the block that DiagCode names, and
// goes on with the one that the answer names.
var keptVendorDiag = kept{
	id: smp.AttrVendorDiag, absorb: (*Port).absorbVendorDiag, unread: (*Port).unreadVendorDiag,
	held: (*Port).heldVendorDiag, place: 8, tables: (*Port).vendorDiagTables,
}

// MaxDiagBlocks bounds the VendorDiag blocks that are read and kept of a port. A
// chain that goes on is cut there.
const MaxDiagBlocks = 16

// DiagBlock is a block of VendorDiag at its index.
type DiagBlock struct {
	Index uint16
	smp.VendorDiag
}

// Diagnosis is what an end port says of its own health.
type Diagnosis struct {
	Code smp.DiagCode
	// Blocks are those of VendorDiag that the code leads to, in the order of the
	// chain, each once.
	Blocks []DiagBlock
	// Missing reports whether the block of index Next was not read.
	Missing bool
	// Loops reports whether the last block names Next as the one that follows, and that
	// Next is in Blocks already.
	Loops bool
	// Cut reports whether block Next follows, and that Blocks has MaxDiagBlocks.
	Cut  bool
	Next uint16
}

// Diagnosis follows the blocks of VendorDiag that were read from the one that
// DiagCode names. A port of which PortInfo was not read has the zero Diagnosis.
func (p *Port) Diagnosis() Diagnosis {
	if !p.InfoRead || !p.IsEnd() {
		return Diagnosis{}
	}
	d := Diagnosis{Code: p.Info.DiagCode}
	next, more := d.Code.VendorDiagIndex()
	seen := make(map[uint16]bool)
	for more {
		block, read := p.VendorDiag[uint32(next)]
		d.Next = next
		switch {
		case seen[next]:
			d.Loops = true
			return d
		case len(d.Blocks) == MaxDiagBlocks:
			d.Cut = true
			return d
		case !read:
			d.Missing = true
			return d
		}
		seen[next] = true
		d.Blocks = append(d.Blocks, DiagBlock{next, block})
		next, more = block.NextIndex, block.NextIndex != 0
	}
	d.Next = 0
	return d
}

// Ends says how the chain of blocks ends, for people: empty where it is whole, or
// where there is none.
func (d *Diagnosis) Ends() string {
	switch {
	case d.Missing:
		return fmt.Sprintf("block %d was not read", d.Next)
	case d.Loops:
		return fmt.Sprintf("comes back to block %d", d.Next)
	case d.Cut:
		return fmt.Sprintf("cut after %d blocks", MaxDiagBlocks)
	}
	return ""
}

func (p *Port) unreadVendorDiag(block uint32) {
	if q, err := p.selected(smp.AttrVendorDiag, 0); err == nil {
		p = q
	}
	if p.VendorDiag = maps.Clone(p.VendorDiag); p.VendorDiag != nil {
		delete(p.VendorDiag, block)
	}
	if len(p.VendorDiag) == 0 {
		p.VendorDiag = nil
	}
	p.noteNode(smp.AttrVendorDiag)
}

// absorbVendorDiag enters a block of the port that was asked, port 0 on a switch.
func (p *Port) absorbVendorDiag(modifier uint32, data []byte) error {
	q, err := p.selected(smp.AttrVendorDiag, 0)
	if err != nil {
		return err
	}
	if modifier > 0xFFFF {
		return fmt.Errorf("%s: VendorDiag block %d, want 0 to %d", q, modifier, 0xFFFF)
	}
	var v smp.VendorDiag
	if err := v.UnmarshalBinary(data); err != nil {
		return err
	}
	have, read := q.VendorDiag[modifier]
	if read && have == v {
		return nil
	}
	if !read && len(q.VendorDiag) >= MaxDiagBlocks {
		return fmt.Errorf("%s: VendorDiag block %d, %d others are kept already", q, modifier, MaxDiagBlocks)
	}
	if q.VendorDiag = maps.Clone(q.VendorDiag); q.VendorDiag == nil { // another snapshot may share it
		q.VendorDiag = make(map[uint32]smp.VendorDiag)
	}
	q.VendorDiag[modifier] = v
	q.note(smp.AttrVendorDiag)
	return nil
}

func (p *Port) heldVendorDiag(tell tellFunc) {
	for _, index := range slices.Sorted(maps.Keys(p.VendorDiag)) {
		t := p.VendorDiag[index]
		tell(index, &t, true)
	}
}

func (p *Port) vendorDiagTables(_ Scope, ask askFunc) {
	if p.IsEnd() && p.InfoRead {
		if index, ok := p.Info.DiagCode.VendorDiagIndex(); ok {
			ask(uint32(index))
		}
	}
}
