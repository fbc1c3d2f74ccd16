package server

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// widths are the components of each record by their number in a component
// mask, reserved ones included: their widths in bits. They follow each other on
// the wire without gaps, from the first byte of the record.
var widths = map[mad.AttributeID][]int{
	sa.AttrNodeRecord: {16, 16, 8, 8, 8, 8, 64, 64, 64, 16, 16, 32, 8, 24, 512},
	sa.AttrPortInfoRecord: {
		16, 8, 8, 64, 64, 16, 16, 32, 16, 16, 8, 8, 8, 8, 4, 4, 4, 4, 2, 3, 3, 4, 4, 4, 4, 4, 4, 8, 8, 8, 4, 4,
		3, 5, 4, 1, 1, 1, 1, 16, 16, 16, 8, 1, 2, 5, 3, 5, 4, 4, 16, 8, 24, 16, 4, 4, 3, 5,
	},
	sa.AttrSLToVLMappingTableRecord:       {16, 8, 8},
	sa.AttrSwitchInfoRecord:               {16, 16, 16, 16, 16, 16, 8, 8, 8, 5, 1, 2, 16, 16, 1, 1, 1, 1, 1, 11, 16},
	sa.AttrLinearForwardingTableRecord:    {16, 16},
	sa.AttrRandomForwardingTableRecord:    {16, 16},
	sa.AttrMulticastForwardingTableRecord: {16, 4, 3, 9, 32},
	sa.AttrSMInfoRecord:                   {16, 16, 64, 64, 32, 4, 4},
	sa.AttrLinkRecord:                     {16, 8, 8, 16},
	sa.AttrGUIDInfoRecord:                 {16, 8, 8, 32, 64, 64, 64, 64, 64, 64, 64, 64},
	sa.AttrServiceRecord: {
		64, 128, 16, 16, 32, 128, 512,
		8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16, 32, 32, 32, 32, 64, 64,
	},
	sa.AttrPKeyTableRecord:          {16, 16, 8},
	sa.AttrVLArbitrationTableRecord: {16, 8, 8},
	sa.AttrInformInfoRecord:         {128, 16, 48, 128, 16, 16, 16, 8, 8, 16, 16, 24, 3, 5, 8, 24},
}

// Match compares records with the components of a query. It may be used for one
// attribute only.
type Match struct {
	want, mask []byte
	set        sa.ComponentMask
}

// NewMatch prepares for queries with this mask; data holds the record of the
// query and may be longer. Bits of the mask beyond the last component are an
// error: nothing can match what does not exist.
func NewMatch(id mad.AttributeID, mask sa.ComponentMask, data []byte) (*Match, error) {
	bits := widths[id]
	if mask>>len(bits) != 0 {
		return nil, fmt.Errorf("%s: component mask %#x, the record has %d components", sa.AttributeName(id), uint64(mask), len(bits))
	}
	m := &Match{set: mask}
	at := 0
	for i, w := range bits {
		if mask&(1<<i) != 0 {
			m.cover(at, w)
		}
		at += w
	}
	if len(m.mask) > len(data) {
		return nil, fmt.Errorf("%s: %d bytes in the query, the components take %d", sa.AttributeName(id), len(data), len(m.mask))
	}
	m.want = data[:len(m.mask)]
	return m, nil
}

// cover has width bits from the bit at looked at.
func (m *Match) cover(at, width int) {
	for len(m.mask)*8 < at+width {
		m.mask = append(m.mask, 0)
	}
	for bit := at; bit < at+width; bit++ {
		m.mask[bit/8] |= 0x80 >> (bit % 8)
	}
}

// Has reports whether the query names these components.
func (m *Match) Has(c sa.ComponentMask) bool { return m.set.Has(c) }

// Matches reports whether a record is as the query asks.
func (m *Match) Matches(record []byte) bool {
	for i, mask := range m.mask {
		if (record[i]^m.want[i])&mask != 0 {
			return false
		}
	}
	return true
}
