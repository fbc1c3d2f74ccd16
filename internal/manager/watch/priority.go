package watch

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// managerTransaction sets the traps of a manager apart from those of its own port's
// agent, which counts its own from 1.
const managerTransaction = 1 << 31

// PriorityChange is trap 144 of the manager at port self that tells of the priority
// of a subnet manager; serial counts such traps.
func PriorityChange(self *observed.Port, serial uint64) (trap mad.SMP, err error) {
	n := smp.Notice{
		IsGeneric: true, Type: smp.NoticeInformational, Producer: uint32(self.Node.Info.NodeType),
		TrapNumber: smp.TrapLocalChange, IssuerLID: self.Info.LID,
	}
	details := smp.LocalChangeDetails{
		LID: self.Info.LID, OtherLocalChanges: true, SMPriorityChange: true, CapabilityMask: self.Info.CapabilityMask,
	}
	trap = mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion,
		Method: mad.MethodTrap, TransactionID: managerTransaction | serial, AttributeID: smp.AttrNotice,
	}
	if err = details.Encode(&n.Details); err == nil {
		err = n.Encode(&trap.Data)
	}
	return trap, err
}
