package observed

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// AnyPort stands for the port that a packet came in by where that is left open.
const AnyPort = ib.PortNone

// Exit is the port by which the switch sends a packet for a unicast LID that came
// in by port in, or is its own (0): 0 when it ends at the switch, ib.PortNone when
// it is dropped. known is false when what decides was not read.
//
// A linear table counts up to LinearFDBTop. Of a random table an entry that was
// read counts; only a table that was read whole sends what no entry covers to the
// default port, and never back there.
func (s *Switch) Exit(lid ib.LID, in ib.PortNum) (out ib.PortNum, known bool) {
	switch {
	case !s.InfoRead:
		return ib.PortNone, false
	case s.Info.LinearFDBCap == 0:
		return s.randomExit(lid, in)
	case lid > s.Info.LinearFDBTop:
		return ib.PortNone, true
	}
	block := int(lid) / smp.LIDsPerLinearBlock
	if block >= len(s.LFTRead) || !s.LFTRead[block] || int(lid) >= len(s.LFT) {
		return ib.PortNone, false
	}
	return s.LFT[lid], true
}

func (s *Switch) randomExit(lid ib.LID, in ib.PortNum) (out ib.PortNum, known bool) {
	whole := len(s.RFTRead)*smp.RandomEntriesPerBlock >= int(s.Info.RandomFDBCap)
	for i, e := range s.RFT {
		read := i/smp.RandomEntriesPerBlock < len(s.RFTRead) && s.RFTRead[i/smp.RandomEntriesPerBlock]
		if read && e.Covers(lid) {
			return e.Port, true
		}
		whole = whole && read
	}
	if !whole || in == s.Info.DefaultPort {
		return ib.PortNone, whole
	}
	return s.Info.DefaultPort, true
}

// LeadsSomewhere reports whether packets that a switch sends by a port arrive
// anywhere: the port exists, and is not the switch itself when that takes no
// data packets.
func (n *Node) LeadsSomewhere(p ib.PortNum) bool {
	return int(p) < len(n.Ports) && (p != 0 || n.Switch.Info.EnhancedPort0)
}
