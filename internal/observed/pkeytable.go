package observed

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// keptPKeyTable: what a sweep reads anyway is what another manager could change to let
// ports talk, so it is read again.
var keptPKeyTable = kept{
	id: smp.AttrPKeyTable, absorb: (*Port).absorbPKeys, unread: (*Port).unreadPKeys,
	held: (*Port).heldPKeys, place: 3, tables: (*Port).pkeyTables,
	blocks: func(p *Port, ask askFunc) { p.pkeyTables(Scope{}, ask) },
}

func (p *Port) absorbPKeys(modifier uint32, data []byte) error {
	q, err := p.selected(smp.AttrPKeyTable, modifier>>16)
	if err != nil {
		return err
	}
	var t smp.PKeyTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	block, cap := int(modifier&0xFFFF), q.PKeyCap()
	if block >= q.PKeyBlocks() {
		return fmt.Errorf("%s: P_KeyTable block %d, the table has %d entries", q, block, cap)
	}
	if len(q.PKeys) != cap { // not read before, or the device changed its mind about the size
		q.PKeys = make([]ib.PKey, cap)
		q.PKeysRead = make([]bool, q.PKeyBlocks())
	}
	have := q.PKeys[block*smp.PKeysPerBlock:]
	have = have[:min(len(have), smp.PKeysPerBlock)]
	if !q.PKeysRead[block] || !slices.Equal(have, t.Keys[:len(have)]) {
		q.note(smp.AttrPKeyTable)
	}
	q.PKeysRead[block] = true
	copy(have, t.Keys[:])
	return nil
}

func (p *Port) unreadPKeys(modifier uint32) {
	q, err := p.selected(smp.AttrPKeyTable, modifier>>16)
	if block := int(modifier & 0xFFFF); err == nil && block < len(q.PKeysRead) {
		q.PKeysRead[block] = false
		q.note(smp.AttrPKeyTable)
	}
}

func (p *Port) heldPKeys(tell tellFunc) {
	for block, read := range p.PKeysRead {
		var t smp.PKeyTable
		copy(t.Keys[:], p.PKeys[min(block*smp.PKeysPerBlock, len(p.PKeys)):])
		tell(smp.PKeyModifier(p.selector(), uint16(block)), &t, read)
	}
}

// pkeyTables are those of end ports and of the switch ports that face them or nobody
// known. With forwarding tables come those of ports between switches that check keys.
func (p *Port) pkeyTables(s Scope, ask askFunc) {
	if p.IsEnd() || p.FacesEnd() || p.FacesStranger() || s.Audit || s.Forwarding && p.checksKeys() {
		for block := range p.PKeyBlocks() {
			ask(smp.PKeyModifier(p.selector(), uint16(block)))
		}
	}
}

// checksKeys reports whether packets may be refused at p for their keys. Between
// switches that is unusual, and then a packet's path cannot be told without the table.
func (p *Port) checksKeys() bool {
	return p.InfoRead && p.Peer != nil && (p.Info.PartitionEnforcementInbound || p.Info.PartitionEnforcementOutbound)
}

// Recall enters in the ports of a snapshot what an earlier one held of them that is not read
// again, or was not: what they accept and do not keep, and P_Keys.
func (f *Fabric) Recall(old *Fabric) {
	for _, n := range old.Nodes {
		same := f.Node(n.GUID())
		if same == nil {
			continue
		}
		for i := range min(len(n.Ports), len(same.Ports)) {
			// A port that was down may have another firmware behind it.
			if same.Ports[i].IsUp() && n.Ports[i].IsUp() {
				same.Ports[i].Forgets = n.Ports[i].Forgets
			}
			same.Ports[i].Recall(&n.Ports[i])
		}
	}
}

// Recall enters what an earlier snapshot held of those blocks of the P_Key table
// that could not be read this time. They stay marked as not read: what they
// hold is what the port may still have, and proves nothing.
func (p *Port) Recall(old *Port) {
	if len(old.PKeys) != p.PKeyCap() || p.PKeysKnown() {
		return
	}
	p.note(smp.AttrPKeyTable)
	if p.PKeys == nil {
		p.PKeys = make([]ib.PKey, p.PKeyCap())
		p.PKeysRead = make([]bool, p.PKeyBlocks())
	}
	for block, read := range p.PKeysRead {
		if first := block * smp.PKeysPerBlock; !read {
			copy(p.PKeys[first:min(first+smp.PKeysPerBlock, len(p.PKeys))], old.PKeys[first:])
		}
	}
}
