package withkeys

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// Gate stands between a program and a port. Calls are one at a time.
type Gate struct {
	// Write lets Sets of subnet and performance management through.
	Write bool
	// Table reads the table again; an error leaves the one before in force.
	Table func() (*Table, error)
	// Fresh is how old a table may be that knows where a packet goes, Least the least time
	// between two, however often one does not.
	Fresh, Least time.Duration
	// Say tells the user what was refused, once for each kind, and that the table could not be
	// read.
	Say func(text string)
	// Now is a clock.
	Now func() time.Time

	table *Table
	read  time.Time
	stale bool // a request was refused or not answered: a key may be another's now
	said  map[string]bool
}

// say tells something once.
func (g *Gate) say(text string) {
	if g.said == nil {
		g.said = make(map[string]bool)
	}
	if !g.said[text] {
		g.said[text] = true
		g.Say(text)
	}
}

// refuse says why something is not sent.
func (g *Gate) refuse(text string) umad.Errno {
	g.say("refused: " + text)
	return umad.EPERM
}

// Register judges the registration of an agent. A program may ask; it may not answer in
// place of a subnet manager, an administration or an agent of a device.
func (g *Gate) Register(r *umad.Registration) umad.Errno {
	if r.Methods == (umad.Methods{}) {
		return umad.OK
	}
	switch r.Class {
	case mad.ClassSubnLID, mad.ClassSubnDirected, mad.ClassPerfMgt:
		return g.refuse(fmt.Sprintf("a program that takes requests of class 0x%02x: it may not be a subnet manager or an agent of a device", uint8(r.Class)))
	case mad.ClassSubnAdm:
		if r.Methods != umad.MethodSet(mad.MethodReport) {
			return g.refuse("a program that takes requests of subnet administration: it may not be one")
		}
	}
	return umad.OK
}

// reads are the methods that change nothing, and those of answers to a program's own
// services (ibping, ibsysstat).
var reads = []mad.Method{
	mad.MethodGet, mad.MethodGetTable, mad.MethodGetTraceTable, mad.MethodGetMulti,
}

// Out judges a datagram that a program sends to a LID, and fills the M_Key into it.
func (g *Gate) Out(m []byte, lid ib.LID) umad.Errno {
	if len(m) < mad.HeaderSize {
		return umad.EINVAL
	}
	class, method := mad.Class(m[mad.OffsetClass]), mad.Method(m[mad.OffsetMethod])
	name := fmt.Sprintf("method 0x%02x of class 0x%02x", uint8(method), uint8(class))
	switch class {
	case mad.ClassSubnLID, mad.ClassSubnDirected:
		if len(m) != mad.Size {
			return umad.EINVAL
		}
		return g.outSMP((*[mad.Size]byte)(m), method, lid, name)
	case mad.ClassPerfMgt:
		switch {
		case method == mad.MethodGet:
		case method != mad.MethodSet:
			return g.refuse(name + ": it is for agents")
		case !g.Write:
			return g.refuse("a Set of performance management, which clears counters or starts a measurement: --write lets it through")
		}
	case mad.ClassSubnAdm:
		if !slices.Contains(reads, method) && method != mad.MethodReportResp {
			return g.refuse("a Set of subnet administration (" + name + "): it needs no M_Key, run the program without ibwarden keys exec")
		}
	default:
		if !slices.Contains(reads, method) && !method.IsResponse() && !g.Write {
			return g.refuse(name + ": --write lets it through")
		}
	}
	return umad.OK
}

func (g *Gate) outSMP(m *[mad.Size]byte, method mad.Method, lid ib.LID, name string) umad.Errno {
	attribute := mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffsetAttributeID:]))
	switch {
	case method == mad.MethodGet:
	case method != mad.MethodSet || attribute == smp.AttrSMInfo:
		return g.refuse(fmt.Sprintf("%s, attribute 0x%04x: it is for subnet managers and agents", name, uint16(attribute)))
	case !g.Write:
		return g.refuse("a Set of subnet management, " + smp.AttributeName(attribute) + ": --write lets it through")
	}
	to := g.to(m, lid)
	if to != nil && to.Key != 0 {
		binary.BigEndian.PutUint64(m[mad.OffsetMKey:], uint64(to.Key))
	}
	if method == mad.MethodSet && attribute == smp.AttrPortInfo {
		return g.keepKey(m, to)
	}
	return umad.OK
}

// Bytes of PortInfo.
const (
	offLease     = 26
	offLevel     = 34
	levelShift   = 6
	levelMask    = 0x03 << levelShift
	modifierPort = 0xFF // the bits of the modifier that name the port
)

// keepKey has a Set of PortInfo leave the M_Key, its level and its lease as they are: a
// program that has read them read no key.
func (g *Gate) keepKey(m *[mad.Size]byte, to *Port) umad.Errno {
	num := ib.PortNum(binary.BigEndian.Uint32(m[mad.OffsetAttributeModifier:]) & modifierPort)
	if to != nil && to.Switch && num != 0 {
		return umad.OK // port 0 has those of the switch
	}
	of := to
	if to != nil && !to.Switch && num != 0 {
		of = g.table.port(to, num)
	}
	if of == nil {
		return g.refuse("a Set of PortInfo of a port that is not known: it would set its M_Key")
	}
	data := m[mad.DataOffset:]
	binary.BigEndian.PutUint64(data, uint64(of.Key))
	binary.BigEndian.PutUint16(data[offLease:], of.Lease)
	data[offLevel] = data[offLevel]&^levelMask | of.Level<<levelShift
	return umad.OK
}

// to is where an SMP goes, by a table that is young enough.
func (g *Gate) to(m *[mad.Size]byte, lid ib.LID) *Port {
	age := g.Now().Sub(g.read)
	if g.table == nil || age >= g.Fresh || g.stale && age >= g.Least {
		g.refresh()
	}
	p := g.table.To(m, lid)
	if p == nil && g.Now().Sub(g.read) >= g.Least {
		g.refresh()
		p = g.table.To(m, lid)
	}
	return p
}

// Refresh reads the table, and reports why it cannot be read.
func (g *Gate) Refresh() error {
	t, err := g.Table()
	g.read, g.stale = g.Now(), false
	if err == nil {
		g.table = t
	}
	return err
}

func (g *Gate) refresh() {
	if err := g.Refresh(); err != nil {
		g.say("the M_Keys could not be read again, those from before are used: " + err.Error())
	}
	if g.table == nil {
		g.table = new(Table)
	}
}

// Refused is told that the kernel did not take what Out has let through: of a request to the own port Linux
// says so when the M_Key is another.
func (g *Gate) Refused() { g.stale = true }

// In blanks the M_Keys in a message that a program is about to read, of an agent that asked
// it or of a time-out.
func (g *Gate) In(status uint32, m []byte) {
	if len(m) < mad.HeaderSize {
		return
	}
	attribute := mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffsetAttributeID:]))
	switch mad.Class(m[mad.OffsetClass]) {
	case mad.ClassSubnLID, mad.ClassSubnDirected:
		if umad.Errno(status) == umad.ETIMEDOUT {
			g.stale = true
		}
		blank(m, mad.OffsetMKey)
		switch attribute {
		case smp.AttrPortInfo:
			blank(m, mad.DataOffset)
		case smp.AttrNotice:
			blankNotice(m, mad.DataOffset)
		}
	case mad.ClassSubnAdm:
		switch attribute {
		case smp.AttrNotice:
			blankNotice(m, sa.DataOffset)
		case sa.AttrPortInfoRecord:
			size := 8 * int(binary.BigEndian.Uint16(pad(m, sa.OffsetAttributeOffset)))
			for at := sa.DataOffset + recordKey; at < len(m); at += size {
				blank(m, at)
				if size < sa.PortInfoRecordSize {
					return
				}
			}
		}
	}
}

const (
	// recordKey is where a PortInfoRecord has the M_Key.
	recordKey = 4
	// noticeNumber and noticeKey are where a Notice has the number of its trap, and one
	// about a bad M_Key that key.
	noticeNumber = 4
	noticeKey    = 24
	keySize      = 8
)

// blank clears the key at a place, as far as the message has it.
func blank(m []byte, at int) {
	if at < len(m) {
		clear(m[at:min(at+keySize, len(m))])
	}
}

func blankNotice(m []byte, at int) {
	if smp.TrapNumber(binary.BigEndian.Uint16(pad(m, at+noticeNumber))) == smp.TrapBadMKey {
		blank(m, at+noticeKey)
	}
}

// pad is two bytes of a message, 0 where it is shorter.
func pad(m []byte, at int) []byte {
	var two [2]byte
	if at < len(m) {
		copy(two[:], m[at:])
	}
	return two[:]
}

// Keys is how many end ports have a key that is known.
func (g *Gate) Keys() (n int) {
	for i := range g.table.Ports {
		if g.table.Ports[i].Key != 0 {
			n++
		}
	}
	return n
}
