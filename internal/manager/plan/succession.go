package plan

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// NameMaster wants MasterSMLID to be lid at the end ports that can be told, and nothing else.
// registered reports whether what hosts registered is known: they need not register again.
func NameMaster(want *observed.Desired, ends []*observed.Port, lid ib.LID, registered bool) {
	for _, p := range ends {
		if p.InfoRead && p.Info.LID.IsUnicast() && (p.Info.PortState == smp.PortActive || p.Node.Switch != nil) {
			x := want.Port(p)
			x.Elements, x.Info.MasterSMLID = observed.ElementMasterSMLID, lid
			x.Registered = registered
		}
	}
}

// MovesWithMaster reports whether all writes but those of P_Key tables belong to a change of the master alone, which is
// at the port self then: MasterSMLID of a port; and where the policy sets the LID m aside for
// the master, the address of that port, and of those that have the LID so far, and the entry
// of the LID in a linear forwarding table. m is 0 for none. tables says that there are P_Key
// tables to write.
func (p *Plan) MovesWithMaster(d *observed.Desired, self *observed.Port, m ib.LID) (all, tables bool) {
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			if op.Attribute == smp.AttrPKeyTable {
				tables = true
			} else if !movesWithMaster(op, d, self, m) {
				return false, tables
			}
		}
	}
	return true, tables
}

func movesWithMaster(op Op, d *observed.Desired, self *observed.Port, m ib.LID) bool {
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
