package watch

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Directory says whom addresses belong to.
type Directory struct {
	// Holder is the end port to which the manager has given a LID; nil for none.
	Holder func(ib.LID) *observed.Port
	// Ends are the end ports by GUID.
	Ends []*observed.Port
	// Prefix is the subnet's, with which the GIDs of its ports begin.
	Prefix uint64
}

// byGID is the end port with a GID; nil for none.
func (d *Directory) byGID(g ib.GID) *observed.Port {
	i, found := slices.BinarySearchFunc(d.Ends, g.PortGUID(), func(p *observed.Port, guid ib.PortGUID) int {
		switch {
		case p.GUID < guid:
			return -1
		case p.GUID > guid:
			return 1
		}
		return 0
	})
	if !found || g.Prefix() != d.Prefix && g.Prefix() != ib.DefaultGIDPrefix {
		return nil
	}
	return d.Ends[i]
}

// Origin is the end port that a refused packet came from: by its LID, or back
// along its route as the switches on the way have noted it. It is nil where that
// leads to nobody.
func (d *Directory) Origin(device *observed.Port, m *smp.BadMKeyDetails) *observed.Port {
	if !m.DRNotice {
		return d.Holder(m.LID)
	}
	hops := int(m.DRHopCount)
	if m.DRPathTruncated || hops >= len(m.DRNoticeReturnPath) {
		return nil
	}
	at := device
	for i := hops; i > 0; i-- { // entry 0 is the sender's own
		out := at
		if at.Node.Switch != nil {
			if out = at.Node.Port(ib.PortNum(m.DRNoticeReturnPath[i])); out == nil {
				return nil
			}
		}
		if out.Peer == nil {
			return nil
		}
		if at = out.Peer; at.Node.Switch == nil {
			return at // whatever the packet says of its way before, nothing goes through here
		}
	}
	return at
}
