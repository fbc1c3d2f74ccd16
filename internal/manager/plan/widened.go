package plan

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Widened reports whether what op puts right let its port do more than d wants:
// a key that it should not have, or a guard that does not check.
func Widened(op Op, d *observed.Desired) bool {
	want := d.Port(op.Port)
	switch op.Attribute {
	case smp.AttrPKeyTable:
		for _, k := range op.Port.PKeys {
			if k.IsValid() && Permitted(want.PKeys, k) != k {
				return true
			}
		}
	case smp.AttrPortInfo:
		return !op.Port.IsEnd() && want.Elements&observed.ElementEnforcement != 0 &&
			(want.Info.PartitionEnforcementInbound && !op.Port.Info.PartitionEnforcementInbound ||
				want.Info.PartitionEnforcementOutbound && !op.Port.Info.PartitionEnforcementOutbound)
	}
	return false
}
