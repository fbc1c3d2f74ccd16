package plan

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// diffGUIDs takes from every port the aliases that it is to lose before any
// port gets one: no two ports have a GUID at the same time. A block that could
// not be read and in which nothing is wanted is left alone, since there are
// ports without the attribute.
func (p *Plan) diffGUIDs(port *observed.Port, add addFunc) {
	want := p.desired.Port(port).GUIDs
	if want == nil || !port.InfoRead {
		return
	}
	for block := range port.GUIDBlocks() {
		now, read := HeldGUIDs(port, block)
		after := WantedGUIDs(port, want, block)
		between := commonGUIDs(now, after)
		if now == after {
			continue // also where nothing was read and nothing is wanted
		}
		if !read || between != now {
			add(TakeGUIDs, port, smp.AttrGUIDInfo, uint32(block))
		}
		if between != after {
			add(GiveGUIDs, port, smp.AttrGUIDInfo, uint32(block))
		}
	}
}

// HeldGUIDs is a block of a port's table of GUIDs as it was read, without what
// lies past the table. Entry 0 of the table is the port's own, whatever the
// port says; where nothing was read the others are zero.
func HeldGUIDs(port *observed.Port, block int) (b [smp.GUIDsPerBlock]uint64, read bool) {
	t, read := port.GUIDInfo[uint32(block)]
	for i, g := range t.GUIDs {
		b[i] = guidEntry(port, block*smp.GUIDsPerBlock+i, g)
	}
	return b, read
}

// WantedGUIDs is a block of the table of GUIDs as it is wanted: what a write
// holds, the port's own GUID included.
func WantedGUIDs(port *observed.Port, want []ib.PortGUID, block int) (b [smp.GUIDsPerBlock]uint64) {
	for i := range b {
		var g uint64
		index := block*smp.GUIDsPerBlock + i
		if index < len(want) {
			g = uint64(want[index])
		}
		b[i] = guidEntry(port, index, g)
	}
	return b
}

func guidEntry(port *observed.Port, index int, g uint64) uint64 {
	switch {
	case index == 0:
		return uint64(port.GUID)
	case index >= int(port.Info.GUIDCap):
		return 0
	}
	return g
}

// commonGUIDs holds the entries that are the same in both.
func commonGUIDs(now, after [smp.GUIDsPerBlock]uint64) (b [smp.GUIDsPerBlock]uint64) {
	for i := range b {
		if now[i] == after[i] {
			b[i] = now[i]
		}
	}
	return b
}

// guidInfo is a block of a table of GUIDs.
var guidInfo = Attribute{
	Held: func(p *observed.Port, modifier uint32) (Encoder, bool) {
		held, read := HeldGUIDs(p, int(modifier))
		return &smp.GUIDInfo{GUIDs: held}, read
	},
	Wanted: func(p *observed.Port, d *observed.Desired, modifier uint32) Encoder {
		return &smp.GUIDInfo{GUIDs: WantedGUIDs(p, d.Port(p).GUIDs, int(modifier))}
	},
	Enter: func(p *observed.Port, d *observed.Desired, block uint32, data []byte) error {
		var t smp.GUIDInfo
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		want := d.Port(p)
		want.GUIDs = withGUIDs(p, want.GUIDs, int(block), t.GUIDs)
		return nil
	},
	fill: (*Plan).fillGUIDs,
}

// withGUIDs is a table of GUIDs, that which a port holds for nil, with one block
// as it is wanted.
func withGUIDs(p *observed.Port, table []ib.PortGUID, block int, guids [smp.GUIDsPerBlock]uint64) []ib.PortGUID {
	if table == nil {
		table = make([]ib.PortGUID, p.Info.GUIDCap)
		for _, a := range p.Aliases() {
			table[a.Index] = a.GUID
		}
	}
	for i, g := range guids {
		if index := block*smp.GUIDsPerBlock + i; index < len(table) {
			table[index] = ib.PortGUID(g)
		}
	}
	return table
}

func (p *Plan) fillGUIDs(op Op) (Write, error) {
	block := int(op.Modifier)
	now, _ := HeldGUIDs(op.Port, block)
	t := smp.GUIDInfo{GUIDs: WantedGUIDs(op.Port, p.desired.Port(op.Port).GUIDs, block)}
	if op.Kind == TakeGUIDs {
		t.GUIDs = commonGUIDs(now, t.GUIDs)
	}
	w := Write{ReadBack: true}
	for i, g := range t.GUIDs {
		if g != now[i] && g != 0 {
			w.Gives = append(w.Gives, ib.PortGUID(g))
		}
		if g != now[i] && now[i] != 0 {
			w.Takes = append(w.Takes, ib.PortGUID(now[i]))
		}
	}
	return p.encoded(w, &t)
}

// GivesOf reports whether a GUIDInfo write gives a port one of the GUIDs.
func (w *Write) GivesOf(guids map[ib.PortGUID]bool) bool {
	return slices.ContainsFunc(w.Gives, func(g ib.PortGUID) bool { return guids[g] })
}
