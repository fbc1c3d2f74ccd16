package observed

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

const (
	vlArbParts     = 4
	portSelectMask = 0xFF
)

func itoa(n int) string { return strconv.Itoa(n) }

// kept says how a snapshot keeps an attribute.
type kept struct {
	id mad.AttributeID
	// absorb enters an answer of p, or of the port of its switch that modifier selects.
	absorb func(p *Port, modifier uint32, data []byte) error
	// unread marks what absorb entered as not read; nil where nothing is marked.
	unread func(p *Port, modifier uint32)
	// blocks calls ask with every modifier by which p is to be read again, since another
	// manager could change the value; nil for attributes that are not read again. For
	// what belongs to a switch as a whole p is its port 0.
	blocks func(p *Port, ask func(modifier uint32))
}

// attributes are those that a snapshot keeps, in the order of Fabric.Blocks. The
// functions of each are in the absorb files.
var attributes = []kept{
	{smp.AttrNodeDescription, (*Port).absorbNodeDescription, nil, nil},
	{smp.AttrSMInfo, (*Port).absorbSMInfo, (*Port).unreadSMInfo, nil},
	{smp.AttrVendorDiag, (*Port).absorbVendorDiag, (*Port).unreadVendorDiag, nil},
	{smp.AttrPortInfo, (*Port).absorbPortInfo, (*Port).unreadPortInfo, (*Port).portInfoBlocks},
	{smp.AttrPKeyTable, (*Port).absorbPKeys, (*Port).unreadPKeys, (*Port).pkeyBlocks},
	{smp.AttrGUIDInfo, (*Port).absorbGUIDInfo, (*Port).unreadGUIDInfo, (*Port).guidBlocks},
	{smp.AttrSLToVLMappingTable, (*Port).absorbSLToVL, nil, (*Port).slToVLBlocks},
	{smp.AttrVLArbitrationTable, (*Port).absorbVLArbitration, nil, (*Port).vlArbitrationBlocks},
	{smp.AttrSwitchInfo, (*Port).absorbSwitchInfo, (*Port).unreadSwitchInfo, nil},
	{smp.AttrLinearForwardingTable, (*Port).absorbLFT, (*Port).unreadLFT, (*Port).lftBlocks},
	{smp.AttrRandomForwardingTable, (*Port).absorbRFT, (*Port).unreadRFT, (*Port).rftBlocks},
	{smp.AttrMulticastForwardingTable, (*Port).absorbMFT, (*Port).unreadMFT, (*Port).mftBlocks},
}

// byID are the attributes by number.
var byID = func() map[mad.AttributeID]*kept {
	out := make(map[mad.AttributeID]*kept, len(attributes))
	for i := range attributes {
		out[attributes[i].id] = &attributes[i]
	}
	return out
}()

// Keeps reports whether a snapshot keeps an attribute.
func Keeps(attribute mad.AttributeID) bool { return byID[attribute] != nil }

// Absorb enters the answer of a device: attribute and modifier of a Get or
// Set that was sent along p's Path, and the 64 octets that came back. For an
// attribute of a switch p is any port of it whose Path leads there; tables of
// a port go to the port that the modifier selects. An answer that makes no
// sense for this device is an error and changes nothing.
func (p *Port) Absorb(attribute mad.AttributeID, modifier uint32, data []byte) error {
	x := byID[attribute]
	if x == nil {
		return fmt.Errorf("%s: the snapshot keeps no attribute 0x%04x", p, uint16(attribute))
	}
	return x.absorb(p, modifier, data)
}

func (p *Port) absorbNodeDescription(_ uint32, data []byte) error {
	var d smp.NodeDescription
	if err := d.UnmarshalBinary(data); err != nil {
		return err
	}
	if text := d.String(); text != p.Node.Description {
		p.Node.Description = text
		p.noteNode(smp.AttrNodeDescription)
	}
	return nil
}

func (p *Port) absorbSwitchInfo(_ uint32, data []byte) error {
	s := p.Node.Switch
	if s == nil {
		return p.misplaced(smp.AttrSwitchInfo)
	}
	before, read := s.Info, s.InfoRead
	if err := s.Info.UnmarshalBinary(data); err != nil {
		return err
	}
	before.PortStateChange = s.Info.PortStateChange // which tells of ports, and is put back
	if s.InfoRead = true; !read || s.Info != before {
		p.noteNode(smp.AttrSwitchInfo)
	}
	return nil
}

func (p *Port) absorbPortInfo(modifier uint32, data []byte) error {
	q, err := p.selected(smp.AttrPortInfo, modifier&portSelectMask)
	if err != nil {
		return err
	}
	before, read := q.Info, q.InfoRead
	if err := q.Info.UnmarshalBinary(data); err != nil {
		return err
	}
	if q.Info.DiagCode != before.DiagCode {
		q.VendorDiag = nil // they are about another trouble
	}
	if q.InfoRead = true; !read || !sameInfo(q.Info, before) {
		q.note(smp.AttrPortInfo)
	}
	return nil
}

func (p *Port) misplaced(attribute mad.AttributeID) error {
	return fmt.Errorf("%s: %s does not exist on a %s", p, smp.AttributeName(attribute), p.Node.Type())
}

// MarkUnread marks what Absorb entered for the same attribute and modifier as not
// read, because the device was asked again and did not answer.
func (p *Port) MarkUnread(attribute mad.AttributeID, modifier uint32) {
	if x := byID[attribute]; x != nil && x.unread != nil {
		x.unread(p, modifier)
		return
	}
	p.noteNode(attribute)
}

func (p *Port) unreadSwitchInfo(uint32) {
	if s := p.Node.Switch; s != nil {
		s.InfoRead = false
	}
	p.noteNode(smp.AttrSwitchInfo)
}

func (p *Port) unreadPortInfo(modifier uint32) {
	if q, err := p.selected(smp.AttrPortInfo, modifier&portSelectMask); err == nil {
		q.InfoRead = false
		q.note(smp.AttrPortInfo)
	}
}

func (p *Port) unreadPKeys(modifier uint32) {
	q, err := p.selected(smp.AttrPKeyTable, modifier>>16)
	if block := int(modifier & 0xFFFF); err == nil && block < len(q.PKeysRead) {
		q.PKeysRead[block] = false
		q.note(smp.AttrPKeyTable)
	}
}

func (p *Port) unreadLFT(block uint32) {
	if s := p.Node.Switch; s != nil && int(block) < len(s.LFTRead) {
		s.LFTRead[block] = false
	}
	p.noteNode(smp.AttrLinearForwardingTable)
}

func (p *Port) unreadRFT(block uint32) {
	if s := p.Node.Switch; s != nil && int(block) < len(s.RFTRead) {
		s.RFTRead[block] = false
	}
	p.noteNode(smp.AttrRandomForwardingTable)
}

// selected is the port that a modifier chooses: on a switch any of its ports,
// on a CA or router the one that was asked.
func (p *Port) selected(attribute mad.AttributeID, num uint32) (*Port, error) {
	if p.Node.Switch == nil {
		return p, nil
	}
	if int(num) >= len(p.Node.Ports) {
		return nil, fmt.Errorf("%s: %s of port %d, the switch has %d",
			p, smp.AttributeName(attribute), num, len(p.Node.Ports)-1)
	}
	return &p.Node.Ports[num], nil
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

func (p *Port) absorbLFT(modifier uint32, data []byte) error {
	s := p.Node.Switch
	if s == nil {
		return p.misplaced(smp.AttrLinearForwardingTable)
	}
	var t smp.LinearForwardingTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	block := int(modifier)
	if block*smp.LIDsPerLinearBlock >= int(s.Info.LinearFDBCap) {
		return fmt.Errorf("%s: LinearForwardingTable block %d, the table has %d entries", p, block, s.Info.LinearFDBCap)
	}
	for len(s.LFTRead) <= block {
		s.LFTRead = append(s.LFTRead, false)
		s.LFT = append(s.LFT, unrouted[:]...)
	}
	have := s.LFT[block*smp.LIDsPerLinearBlock:][:smp.LIDsPerLinearBlock]
	if !s.LFTRead[block] || !slices.Equal(have, t.Ports[:]) {
		p.noteNode(smp.AttrLinearForwardingTable)
	}
	s.LFTRead[block] = true
	copy(have, t.Ports[:])
	return nil
}

var unrouted = func() (b [smp.LIDsPerLinearBlock]ib.PortNum) {
	for i := range b {
		b[i] = ib.PortNone
	}
	return b
}()

func (p *Port) absorbRFT(modifier uint32, data []byte) error {
	s := p.Node.Switch
	if s == nil {
		return p.misplaced(smp.AttrRandomForwardingTable)
	}
	var t smp.RandomForwardingTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	block := int(modifier)
	if block*smp.RandomEntriesPerBlock >= int(s.Info.RandomFDBCap) {
		return fmt.Errorf("%s: RandomForwardingTable block %d, the table has %d entries", p, block, s.Info.RandomFDBCap)
	}
	for len(s.RFTRead) <= block {
		s.RFTRead = append(s.RFTRead, false)
		s.RFT = append(s.RFT, make([]smp.RandomEntry, smp.RandomEntriesPerBlock)...)
	}
	have := s.RFT[block*smp.RandomEntriesPerBlock:][:smp.RandomEntriesPerBlock]
	if !s.RFTRead[block] || !slices.Equal(have, t.Entries[:]) {
		p.noteNode(smp.AttrRandomForwardingTable)
	}
	s.RFTRead[block] = true
	copy(have, t.Entries[:])
	return nil
}

func (p *Port) absorbSLToVL(modifier uint32, data []byte) error {
	var t smp.SLToVLMappingTable
	if err := t.UnmarshalBinary(data); err != nil {
		return err
	}
	if p.Node.Switch == nil {
		p.setSLToVL(0, t)
		return nil
	}
	target, ok := smp.SplitSLToVLModifier(modifier)
	if !ok || target.AllOutputs {
		return fmt.Errorf("%s: SLToVLMappingTable modifier 0x%08x names no output port", p, modifier)
	}
	out, err := p.selected(smp.AttrSLToVLMappingTable, uint32(target.Out))
	if err != nil {
		return err
	}
	if !target.AllInputs {
		out.setSLToVL(target.In, t)
		return nil
	}
	for in := range out.Node.Ports {
		out.setSLToVL(ib.PortNum(in), t)
	}
	return nil
}

func (p *Port) setSLToVL(in ib.PortNum, t smp.SLToVLMappingTable) {
	if p.SLToVL == nil {
		inputs := 1
		if p.Node.Switch != nil { // most of them, if any
			inputs = len(p.Node.Ports)
		}
		p.SLToVL = make(map[ib.PortNum]smp.SLToVLMappingTable, inputs)
	}
	if have, read := p.SLToVL[in]; !read || have != t {
		p.SLToVL[in] = t
		p.note(smp.AttrSLToVLMappingTable)
	}
}

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
