package server

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// Subject is what queries are answered from.
type Subject struct {
	View *View
	// Groups are the multicast groups.
	Groups *group.Set
	// Aliases gives the alias GUIDs of a port by index from 1, zero where
	// there is none; may be nil.
	Aliases func(ib.PortGUID) []ib.PortGUID
	// Owner finds the port that has an alias GUID; may be nil.
	Owner func(ib.PortGUID) (ib.PortGUID, bool)
	// NoKeys keeps M_Keys and SM_Keys from the trusted too.
	NoKeys bool
}

// Query is one question.
type Query struct {
	Asker
	ID       mad.AttributeID
	Modifier uint32
	Mask     sa.ComponentMask
	// Data is the record of the query: what its mask names counts.
	Data []byte
	// Budget is how many records may be looked at; what is left of it after.
	Budget int
	// Walk cuts the answer into turns: while there is more, Find wants to be
	// called again.
	Walk Walk
}

// search is a query being answered.
type search struct {
	*Subject
	*Query
	match *Match
	emit  func([]byte) bool
	buf   []byte
	ended bool
}

// families are the records that Find knows, and what goes over all of one that
// the asker may see.
var families = map[mad.AttributeID]func(*search){
	sa.AttrNodeRecord:                     (*search).nodes,
	sa.AttrPortInfoRecord:                 (*search).portInfos,
	sa.AttrSwitchInfoRecord:               (*search).switchInfos,
	sa.AttrLinearForwardingTableRecord:    (*search).linearTables,
	sa.AttrRandomForwardingTableRecord:    (*search).randomTables,
	sa.AttrMulticastForwardingTableRecord: (*search).multicastTables,
	sa.AttrSLToVLMappingTableRecord:       (*search).slToVL,
	sa.AttrVLArbitrationTableRecord:       (*search).vlArbitration,
	sa.AttrSMInfoRecord:                   (*search).smInfos,
	sa.AttrLinkRecord:                     (*search).links,
	sa.AttrGUIDInfoRecord:                 (*search).guidInfos,
	sa.AttrPKeyTableRecord:                (*search).pkeyTables,
}

// Knows reports whether Find answers queries for an attribute.
func Knows(id mad.AttributeID) bool { return families[id] != nil }

// Find calls emit with every record that the query asks for and the asker may
// see, until emit returns false. The bytes are emit's only while it runs. The
// status tells of a query that makes no sense, of one that needs trust, or of a
// budget that was too small.
func Find(s *Subject, q *Query, emit func(record []byte) bool) mad.Status {
	if q.ID == sa.AttrPKeyTableRecord && !q.Trusted {
		return sa.StatusDenied
	}
	x := &search{Subject: s, Query: q, emit: emit}
	mask := q.Mask
	if q.ID == sa.AttrPortInfoRecord && q.Modifier&sa.PortInfoRecordMatchCapabilities != 0 {
		mask &^= sa.PortInfoRecordCapabilityMask // portInfos looks at the bits
	}
	var err error
	if x.match, err = NewMatch(q.ID, mask, q.Data); err != nil {
		return sa.StatusRequestInvalid
	}
	q.Walk.begin()
	families[q.ID](x)
	if q.Budget < 0 {
		return sa.StatusNoResources
	}
	return mad.StatusOK
}

// give hands out a record when it matches.
func (x *search) give(r sa.Record) {
	if x.ended {
		return
	}
	x.Walk.left--
	if x.Budget--; x.Budget < 0 {
		x.ended = true
		return
	}
	b, err := r.AppendBinary(x.buf[:0])
	if err != nil {
		return // a device answered what does not fit its field: it cannot be coded
	}
	x.buf = b
	if x.match.Matches(b) {
		x.ended = !x.emit(b)
	}
}

// ends are the end ports that a record can be about: the one with the LID that
// the query states, or all that the asker sees. All records begin with a LID.
func (x *search) ends(yield func(*Port) bool) {
	if x.match.Has(1) {
		lid := ib.LID(binary.BigEndian.Uint16(x.Data))
		if p := x.View.At(lid); x.Sees(p) {
			yield(p)
		}
		return
	}
	for i := x.Walk.at; i < len(x.View.Ports) && !x.ended && !x.Walk.ended(i); i++ {
		if p := x.View.Ports[i]; x.Sees(p) && !yield(p) {
			return
		}
	}
}

// switches are likewise the switches, by port 0.
func (x *search) switches(yield func(*Port) bool) {
	x.ends(func(p *Port) bool { return p.Node.Switch == nil || yield(p) })
}
