package plan

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ChangeSide is an end of a change.
type ChangeSide uint8

// The ends.
const (
	OldSide ChangeSide = iota
	NewSide
)

// ChangePosition is where a block or a fabric stands on the way of a change.
type ChangePosition uint8

// The positions.
const (
	AtOld        ChangePosition = iota // as it was before
	BetweenSides                       // on the way from one end to the other
	AtNew                              // as it is to be
	Elsewhere                          // at neither end nor between: written by another manager
)

// String says the position in words.
func (p ChangePosition) String() string {
	switch p {
	case AtOld:
		return "old"
	case BetweenSides:
		return "between"
	case AtNew:
		return "new"
	}
	return "elsewhere"
}

// InWords describes the state of a fabric, as part of a sentence.
func (p ChangePosition) InWords() string {
	switch p {
	case AtOld:
		return "as it was before the change"
	case AtNew:
		return "as it is to be after the change"
	case BetweenSides:
		return "between the old and the new state"
	}
	return "in a state that the change does not pass through"
}

// MarshalText prints the position as String does.
func (p ChangePosition) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// ChangeStatus is how far a fabric has got between the old and the new state.
type ChangeStatus struct {
	Position ChangePosition `json:"place"`
	// Old, Between and New count blocks; Elsewhere describes each block that is in
	// none of these states.
	Old       int      `json:"old"`
	Between   int      `json:"between"`
	New       int      `json:"new"`
	Elsewhere []string `json:"elsewhere"`
}

// Compare compares a fabric, as it was read, with a change.
func (c *Change) Compare(f *observed.Fabric) ChangeStatus {
	s := ChangeStatus{Elsewhere: []string{}}
	spare := c.spare(f)
	for i := range c.Blocks {
		b := &c.Blocks[i]
		switch place, why := b.stand(f, spare[portKey{b.Node, b.Port}]); place {
		case AtOld:
			s.Old++
		case AtNew:
			s.New++
		case BetweenSides:
			s.Between++
		default:
			s.Elsewhere = append(s.Elsewhere, fmt.Sprintf("%s: %s (modifier 0x%08x): %s", b.Name, smp.AttributeName(b.Attribute), b.Modifier, why))
		}
	}
	switch {
	case len(s.Elsewhere) > 0:
		s.Position = Elsewhere
	case s.Between > 0 || s.Old > 0 && s.New > 0:
		s.Position = BetweenSides
	case s.New > 0 || len(c.Blocks) == 0:
		s.Position = AtNew
	}
	return s
}

// portKey names a port.
type portKey struct {
	node ib.NodeGUID
	num  ib.PortNum
}

// spare are the keys by port that make way for others, and can stand elsewhere
// while the change is carried out: at the manager's port and the switch port
// before it all that stand there before or after, at other switch ports the
// default key.
func (c *Change) spare(f *observed.Fabric) map[portKey][]ib.PKey {
	out := map[portKey][]ib.PKey{}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		p := b.port(f)
		if b.Attribute != smp.AttrPKeyTable || p == nil {
			continue
		}
		managers := p == f.Self || f.Self != nil && p == f.Self.Peer
		for _, data := range [2]*[mad.DataSize]byte{&b.Before, &b.After} {
			var t smp.PKeyTable
			if t.UnmarshalBinary(data[:]) != nil {
				continue
			}
			for _, k := range t.Keys {
				if k.IsValid() && (managers || p.FacesEnd() && k.Base() == ib.PKeyBaseDefault) {
					out[portKey{b.Node, b.Port}] = append(out[portKey{b.Node, b.Port}], k)
				}
			}
		}
	}
	return out
}

func (b *ChangedBlock) port(f *observed.Fabric) *observed.Port {
	n := f.Node(b.Node)
	if n == nil {
		return nil
	}
	p := n.Port(b.Port)
	if p == nil || !p.Reached {
		return nil
	}
	return p
}

const neither = "holds neither what it held before nor what it was to hold"

func (b *ChangedBlock) stand(f *observed.Fabric, spare []ib.PKey) (ChangePosition, string) {
	p := b.port(f)
	if p == nil {
		return Elsewhere, "the port was not found"
	}
	switch b.Attribute {
	case smp.AttrPKeyTable:
		return b.standKeys(p, spare)
	case smp.AttrGUIDInfo:
		return b.standGUIDs(p)
	case smp.AttrPortInfo:
		return b.standPortInfo(p)
	case smp.AttrSwitchInfo:
		return b.standSwitchInfo(p)
	}
	now, read, err := b.now(p)
	switch {
	case err != nil:
		return Elsewhere, err.Error()
	case !read && b.Unread:
		return BetweenSides, ""
	case !read:
		return Elsewhere, "could not be read"
	case b.Attribute == smp.AttrLinearForwardingTable && int(b.Modifier)*smp.LIDsPerLinearBlock > int(p.Node.Switch.Info.LinearFDBTop):
		return AtOld, "" // beyond the top nothing counts, nor is it read
	case now == b.After:
		return AtNew, ""
	case now == b.Before && !b.Unread, b.Unread:
		return AtOld, ""
	}
	return Elsewhere, neither
}

// now encodes what a fabric holds of a block.
func (b *ChangedBlock) now(p *observed.Port) (data [mad.DataSize]byte, read bool, err error) {
	what, err := Describe(b.Attribute)
	if err != nil {
		return data, false, err
	}
	held, read := what.Held(p, b.Modifier)
	return data, read, held.Encode(&data)
}

// standKeys takes a table entry by entry: on the way an entry is empty, or a
// full key is limited for a while, or it holds one of the spare keys, which have
// to make way for another and stay elsewhere for a while.
func (b *ChangedBlock) standKeys(p *observed.Port, spare []ib.PKey) (ChangePosition, string) {
	block := int(b.Modifier & 0xFFFF)
	if !p.PKeyBlockRead(block) {
		return Elsewhere, "could not be read"
	}
	var before, after smp.PKeyTable
	if before.UnmarshalBinary(b.Before[:]) != nil || after.UnmarshalBinary(b.After[:]) != nil {
		return Elsewhere, "the journal is damaged"
	}
	now := &smp.PKeyTable{Keys: smp.PKeyBlock(p.PKeys, block)}
	switch {
	case now.Keys == after.Keys:
		return AtNew, ""
	case now.Keys == before.Keys:
		return AtOld, ""
	}
	for i, k := range now.Keys {
		x, y := before.Keys[i], after.Keys[i]
		if k == x || k == y || (x != y || !x.IsValid()) && slices.Contains(spare, k) || x != y && (!k.IsValid() || !k.IsFull() && (k.Base() == x.Base() || k.Base() == y.Base())) {
			continue
		}
		return Elsewhere, fmt.Sprintf("index %d holds %v, which is neither %v as before nor %v as it was to be", i, k, x, y)
	}
	return BetweenSides, ""
}

// standGUIDs takes a table entry by entry: on the way an entry is empty.
func (b *ChangedBlock) standGUIDs(p *observed.Port) (ChangePosition, string) {
	now, read := HeldGUIDs(p, int(b.Modifier))
	var before, after smp.GUIDInfo
	if before.UnmarshalBinary(b.Before[:]) != nil || after.UnmarshalBinary(b.After[:]) != nil {
		return Elsewhere, "the journal is damaged"
	}
	switch {
	case !read && b.Unread:
		return BetweenSides, ""
	case !read:
		return Elsewhere, "could not be read"
	case now == after.GUIDs:
		return AtNew, ""
	case b.Unread, now == before.GUIDs:
		return AtOld, ""
	}
	for i, g := range now {
		if x, y := before.GUIDs[i], after.GUIDs[i]; g != x && g != y && g != 0 {
			return Elsewhere, fmt.Sprintf("entry %d holds %v, which is neither %v as before nor %v as it was to be",
				int(b.Modifier)*smp.GUIDsPerBlock+i, ib.PortGUID(g), ib.PortGUID(x), ib.PortGUID(y))
		}
	}
	return BetweenSides, ""
}

func (b *ChangedBlock) standPortInfo(p *observed.Port) (ChangePosition, string) {
	if !p.InfoRead {
		return Elsewhere, "could not be read"
	}
	var before, after smp.PortInfo
	if before.UnmarshalBinary(b.Before[:]) != nil || after.UnmarshalBinary(b.After[:]) != nil {
		return Elsewhere, "the journal is damaged"
	}
	fromOld, fromNew := b.Elements.Differ(&p.Info, &before), b.Elements.Differ(&p.Info, &after)
	lost := fromNew & p.Forgets // asked for, and not kept
	switch {
	case fromNew&^lost == 0 && (!b.Activate || p.Info.PortState == smp.PortActive):
		return AtNew, ""
	case fromOld == 0:
		return AtOld, ""
	case fromOld&fromNew == 0:
		return BetweenSides, ""
	}
	return Elsewhere, fmt.Sprintf("%v: %s", (fromOld & fromNew).Names(), neither)
}

func (b *ChangedBlock) standSwitchInfo(p *observed.Port) (ChangePosition, string) {
	var before, after smp.SwitchInfo
	if before.UnmarshalBinary(b.Before[:]) != nil || after.UnmarshalBinary(b.After[:]) != nil {
		return Elsewhere, "the journal is damaged"
	}
	type pair struct {
		top ib.LID
		out ib.PortNum
	}
	of := func(s *smp.SwitchInfo) pair { return pair{s.LinearFDBTop, s.DefaultPort} }
	switch now := of(&p.Node.Switch.Info); now {
	case of(&after):
		return AtNew, ""
	case of(&before):
		return AtOld, ""
	}
	return Elsewhere, neither
}
