package plan

import (
	"errors"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

var errOtherwise = errors.New("is no longer as it was read")

// SameAsRead compares the data of an answer, to a Get of the block that op
// writes, with the snapshot: all entries of a P_KeyTable, and of PortInfo what
// isolates, the LID and the state. An error says that it is otherwise now, or is
// no such block. Other attributes than these two are not compared.
func (op *Op) SameAsRead(data []byte) error {
	switch op.Attribute {
	case smp.AttrPortInfo:
		var info smp.PortInfo
		if err := info.UnmarshalBinary(data); err != nil {
			return err
		}
		have := &op.Port.Info
		if observed.ElementGuard.Differ(&info, have) != 0 || info.LID != have.LID || info.PortState != have.PortState {
			return errOtherwise
		}
	case smp.AttrPKeyTable:
		var t smp.PKeyTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		for i, k := range t.Keys {
			at := int(op.Modifier&0xFFFF)*smp.PKeysPerBlock + i
			if at < len(op.Port.PKeys) && op.Port.PKeys[at] != k {
				return errOtherwise
			}
		}
	}
	return nil
}
