package observed

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

var keptGUIDInfo = kept{
	id: smp.AttrGUIDInfo, absorb: (*Port).absorbGUIDInfo, unread: (*Port).unreadGUIDInfo,
	held: (*Port).heldGUIDInfo, place: 7, tables: (*Port).guidTables, blocks: (*Port).guidBlocks,
}

// absorbGUIDInfo enters a block of the port that was asked, port 0 on a switch.
func (p *Port) absorbGUIDInfo(modifier uint32, data []byte) error {
	q, err := p.selected(smp.AttrGUIDInfo, 0)
	if err != nil {
		return err
	}
	if modifier >= smp.GUIDInfoBlocks {
		return fmt.Errorf("%s: GUIDInfo block %d, want 0 to %d", q, modifier, smp.GUIDInfoBlocks-1)
	}
	var g smp.GUIDInfo
	if err := g.UnmarshalBinary(data); err != nil {
		return err
	}
	if q.GUIDInfo == nil {
		q.GUIDInfo = make(map[uint32]smp.GUIDInfo)
	}
	if have, read := q.GUIDInfo[modifier]; !read || have != g {
		q.GUIDInfo[modifier] = g
		q.note(smp.AttrGUIDInfo)
	}
	return nil
}

func (p *Port) unreadGUIDInfo(block uint32) {
	if delete(p.GUIDInfo, block); len(p.GUIDInfo) == 0 {
		p.GUIDInfo = nil
	}
	p.noteNode(smp.AttrGUIDInfo)
}

func (p *Port) heldGUIDInfo(tell tellFunc) {
	for _, block := range slices.Sorted(maps.Keys(p.GUIDInfo)) {
		t := p.GUIDInfo[block]
		tell(block, &t, true)
	}
}

func (p *Port) guidTables(s Scope, ask askFunc) {
	if p.IsEnd() && p.InfoRead && (s.Audit || s.Aliases && p.Info.GUIDCap > 1) {
		for block := range p.GUIDBlocks() {
			ask(uint32(block))
		}
	}
}

func (p *Port) guidBlocks(ask askFunc) {
	for block := range p.GUIDBlocks() {
		if _, ok := p.GUIDInfo[uint32(block)]; ok {
			ask(uint32(block))
		}
	}
}

// Aliases are the GUIDs of p besides its own, as far as they were read, by
// their index in the table.
func (p *Port) Aliases() []Alias {
	var out []Alias
	for block := range p.GUIDBlocks() {
		t := p.GUIDInfo[uint32(block)]
		for i, g := range t.GUIDs {
			index := block*smp.GUIDsPerBlock + i
			if g != 0 && index > 0 && index < int(p.Info.GUIDCap) {
				out = append(out, Alias{index, ib.PortGUID(g)})
			}
		}
	}
	return out
}

// Alias is an entry of a table of GUIDs.
type Alias struct {
	Index int
	GUID  ib.PortGUID
}

// GUIDBlocks is the number of blocks of p's table of GUIDs.
func (p *Port) GUIDBlocks() int {
	return (int(p.Info.GUIDCap) + smp.GUIDsPerBlock - 1) / smp.GUIDsPerBlock
}
