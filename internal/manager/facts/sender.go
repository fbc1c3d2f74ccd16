package facts

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// CameFrom is the port that a packet came from, nil when that cannot be told. A
// directed route has the ports by which it entered each switch, written by the
// switches: whatever its sender made up lies beyond the port that it left by, and
// leads nowhere. shown says that it is known so, and not by the LID in the
// packet, which a sender below the kernel can choose.
func CameFrom(f *observed.Fabric, ends []*observed.Port, p *mad.SMP, slid ib.LID) (from *observed.Port, shown bool) {
	if p.Class == mad.ClassSubnLID {
		return OwnerOf(ends, slid), false
	}
	if p.DrSLID != ib.LIDPermissive || p.DrDLID != ib.LIDPermissive || p.HopCount == 0 || p.HopCount > mad.MaxHops {
		return nil, false
	}
	at := f.Self
	for i := p.HopCount; i > 0; i-- {
		if i < p.HopCount && at.Node.Switch == nil {
			return nil, false // no packet comes through a CA or router
		}
		q := at.Node.Port(ib.PortNum(p.ReturnPath[i]))
		if q == nil || at.Node.Switch == nil && q != at || q.Peer == nil {
			return nil, false
		}
		at = q.Peer
	}
	if at.Node.Switch != nil {
		at = &at.Node.Ports[0]
	}
	if !at.Reached || at.GUID == 0 {
		return nil, false
	}
	return at, true
}

// OwnerOf is the end port that has a LID; nil when none has, or two.
func OwnerOf(ends []*observed.Port, lid ib.LID) (owner *observed.Port) {
	for _, p := range ends {
		if first := p.Info.LID; p.InfoRead && first != ib.LIDReserved && lid >= first && int(lid) < int(first)+1<<p.Info.LMC {
			if owner != nil {
				return nil
			}
			owner = p
		}
	}
	return owner
}
