package plan

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// MovesWithMaster reports whether a write belongs to a change of the master alone, which is
// at the port self then: MasterSMLID of a port; and where the policy sets the LID m aside for
// the master, the address of that port, and of those that have the LID so far, and the entry
// of the LID in a linear forwarding table. m is 0 for none.
func MovesWithMaster(op Op, d *observed.Desired, self *observed.Port, m ib.LID) bool {
	switch op.Attribute {
	case smp.AttrPortInfo:
		change := Differing(op.Port, d)
		if m != ib.LIDReserved && (op.Port == self || op.Port.Answers(m)) && op.Kind != Activate {
			change &^= observed.ElementLID | observed.ElementLMC
			return change == 0 || change == observed.ElementMasterSMLID
		}
		return change == observed.ElementMasterSMLID
	case smp.AttrLinearForwardingTable:
		have, want := op.Port.Node.Switch.LFT, d.Nodes[op.Port.Node.Index].LFT
		a, b := smp.LinearBlock(have, int(op.Modifier)), smp.LinearBlock(want, int(op.Modifier))
		if m == ib.LIDReserved || uint32(m/smp.LIDsPerLinearBlock) != op.Modifier {
			return false
		}
		a[m%smp.LIDsPerLinearBlock] = b[m%smp.LIDsPerLinearBlock]
		return a == b
	}
	return false
}
