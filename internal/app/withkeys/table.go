package withkeys

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Table is what is known of the end ports of a fabric, and where cables lead. It has keys:
// it is written to no file and no log.
type Table struct {
	// Ports are the end ports: ports of CAs and routers, and port 0 of switches. The first
	// is the one that packets leave by.
	Ports []Port `json:"ports"`
}

// Port is an end port.
type Port struct {
	Node   ib.NodeGUID `json:"node"`
	GUID   ib.PortGUID `json:"port"`
	Num    ib.PortNum  `json:"num"`
	Switch bool        `json:"switch,omitempty"`
	LID    ib.LID      `json:"lid"`
	LMC    ib.LMC      `json:"lmc,omitempty"`
	// Key is the M_Key that requests carry; 0 where none is needed or known. Level and Lease
	// are M_KeyProtectBits and M_KeyLeasePeriod as they were read.
	Key    ib.MKey `json:"key"`
	Level  uint8   `json:"level,omitempty"`
	Lease  uint16  `json:"lease,omitempty"`
	Cables []Cable `json:"cables,omitempty"`
}

// Cable leads from a port of the node to the end port To of Table.Ports. Other cables carry
// no key.
type Cable struct {
	From ib.PortNum `json:"from"`
	To   int        `json:"to"`
}

// Of is the table of a fabric as it was read; empty where the manager's own port was not.
func Of(f *observed.Fabric) *Table {
	t := new(Table)
	if f == nil || f.Self == nil {
		return t
	}
	ends := f.EndPorts()
	place := make(map[*observed.Port]int, len(ends))
	enter := func(p *observed.Port) {
		if _, there := place[p]; there {
			return
		}
		place[p] = len(t.Ports)
		t.Ports = append(t.Ports, Port{
			Node: p.Node.GUID(), GUID: p.GUID, Num: p.Num, Switch: p.Node.Switch != nil, LID: p.Info.LID, LMC: p.Info.LMC,
			Key: p.Key, Level: p.Info.MKeyProtectBits, Lease: p.Info.MKeyLeasePeriod,
		})
	}
	enter(f.Self.Agent())
	for _, p := range ends {
		enter(p)
	}
	for p, i := range place {
		for _, from := range portsOf(p) {
			if from.Peer == nil || !from.Leads {
				continue
			}
			if to, known := place[from.Peer.Agent()]; known {
				t.Ports[i].Cables = append(t.Ports[i].Cables, Cable{from.Num, to})
			}
		}
	}
	return t
}

// portsOf are the ports of which the cables are those of an end port: its own, or those of
// its switch.
func portsOf(p *observed.Port) (out []*observed.Port) {
	if p.Node.Switch == nil {
		return []*observed.Port{p}
	}
	for i := 1; i < len(p.Node.Ports); i++ {
		out = append(out, &p.Node.Ports[i])
	}
	return out
}

// behind is the end port at the other end of a cable of p; nil where none is known that may
// be sent its key over it.
func (t *Table) behind(p *Port, num ib.PortNum) *Port {
	for _, c := range p.Cables {
		if c.From == num && c.To >= 0 && c.To < len(t.Ports) {
			return &t.Ports[c.To]
		}
	}
	return nil
}

// at is the end port that has a LID; nil for none.
func (t *Table) at(lid ib.LID) *Port {
	if !lid.IsUnicast() {
		return nil
	}
	for i := range t.Ports {
		if p := &t.Ports[i]; p.LID != 0 && lid>>p.LMC == p.LID>>p.LMC {
			return p
		}
	}
	return nil
}

// port is the end port with this number of the node of p; nil for none.
func (t *Table) port(p *Port, num ib.PortNum) *Port {
	for i := range t.Ports {
		if q := &t.Ports[i]; q.Node == p.Node && q.Num == num {
			return q
		}
	}
	return nil
}

// To is the end port whose agent gets an SMP that is sent to a LID; nil where that is not
// known. Of an SMP by directed route the LID is where the route begins.
func (t *Table) To(smp *[mad.Size]byte, lid ib.LID) *Port {
	if mad.Class(smp[mad.OffsetClass]) == mad.ClassSubnLID {
		return t.at(lid)
	}
	if len(t.Ports) == 0 || smp[mad.OffsetStatus]&directionBit != 0 || smp[mad.OffsetHopPointer] != 0 {
		return nil // it is on its way already, and not from here
	}
	p := &t.Ports[0]
	if ib.LID(binary.BigEndian.Uint16(smp[mad.OffsetDrSLID:])) != ib.LIDPermissive {
		if p = t.at(lid); p == nil || !p.Switch {
			return nil
		}
	}
	hops := int(smp[mad.OffsetHopCount])
	if hops > mad.MaxHops {
		return nil
	}
	for hop := 1; hop <= hops; hop++ {
		num := ib.PortNum(smp[mad.OffsetInitialPath+hop])
		if hop > 1 && !p.Switch { // a CA passes nothing on
			return nil
		}
		if p = t.behind(p, num); p == nil {
			return nil
		}
	}
	if last := ib.LID(binary.BigEndian.Uint16(smp[mad.OffsetDrDLID:])); last != ib.LIDPermissive {
		if !p.Switch {
			return nil
		}
		return t.at(last)
	}
	return p
}

// directionBit of the first byte of the status is set in an SMP that returns.
const directionBit = 0x80
