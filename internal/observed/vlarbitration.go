package observed

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptVLArbitration = kept{
	id: smp.AttrVLArbitrationTable, absorb: (*Port).absorbVLArbitration,
	held: (*Port).heldVLArbitration, place: 4, tables: (*Port).vlArbitrationTables, blocks: (*Port).vlArbitrationBlocks,
}

// vlArbParts is the number of parts of the tables: of low and of high priority, two each.
const vlArbParts = 4

func (p *Port) absorbVLArbitration(modifier uint32, data []byte) error {
	q, err := p.selected(smp.AttrVLArbitrationTable, modifier&portSelectMask)
	if err != nil {
		return err
	}
	part := int(modifier >> 16)
	if part < 1 || part > vlArbParts {
		return fmt.Errorf("%s: VLArbitrationTable part %d, want 1 to %d", q, part, vlArbParts)
	}
	var t smp.VLArbitrationTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	if q.VLArbitration == nil {
		q.VLArbitration = make([]smp.VLArbitrationTable, vlArbParts)
		q.note(smp.AttrVLArbitrationTable)
	}
	if have := &q.VLArbitration[part-1]; *have != t {
		*have = t
		q.note(smp.AttrVLArbitrationTable)
	}
	return nil
}

func (p *Port) heldVLArbitration(tell tellFunc) {
	for part, t := range p.VLArbitration {
		tell(smp.VLArbModifier(smp.VLArbPart(part+1), p.selector()), &t, true)
	}
}

// vlArbitrationTables are the parts that have entries.
func (p *Port) vlArbitrationTables(s Scope, ask askFunc) {
	if !p.queues(s) {
		return
	}
	low, high := int(p.Info.VLArbitrationLowCap), int(p.Info.VLArbitrationHighCap)
	const each = len(smp.VLArbitrationTable{}.Entries)
	for i, entries := range [vlArbParts]int{low, low - each, high, high - each} {
		if entries > 0 {
			ask(smp.VLArbModifier(smp.VLArbPart(i+1), p.selector()))
		}
	}
}

func (p *Port) vlArbitrationBlocks(ask askFunc) {
	for part := range p.VLArbitration {
		ask(smp.VLArbModifier(smp.VLArbPart(part+1), p.selector()))
	}
}
