package apply

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Reread reads the blocks that a plan writes once more and compares them with the
// snapshot, which stays as it is. changed is told of each that is otherwise, or
// could not be read.
func Reread(w *transact.Window, p *plan.Plan, changed func(error)) {
	type block struct {
		port      *observed.Port
		attribute mad.AttributeID
		modifier  uint32
	}
	asked := map[block]bool{}
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			b := block{op.Port, op.Attribute, op.Modifier}
			if op.Attribute != smp.AttrPKeyTable && op.Attribute != smp.AttrPortInfo || asked[b] {
				continue
			}
			asked[b] = true
			w.Do(transact.Request{
				Path: op.Port.Path, Respond: op.Port.RespTime(), MKey: op.Port.MKey(), Method: mad.MethodGet,
				Attribute: op.Attribute, Modifier: op.Port.Modifier(op.Attribute, op.Modifier),
			}, func(r transact.Reply) {
				err := r.Err
				if err == nil {
					err = op.SameAsRead(r.SMP.Data[:])
				}
				if err != nil {
					changed(fmt.Errorf("%s: %s (modifier 0x%08x): %w", op.Port, smp.AttributeName(op.Attribute), op.Modifier, err))
				}
			})
		}
	}
}
