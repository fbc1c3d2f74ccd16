package apply

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// ErrLocked says that a port obeys an M_Key that nobody here knows.
var ErrLocked = errors.New("guarded by an M_Key that is not known here")

// giveKey gives a port another M_Key. Once the port has it, it accepts nothing else: when
// the answer is lost, all retries of the write are refused. So whatever the outcome of
// the write, the port is read with the new key, and that answer counts.
func (r *Run) giveKey(op plan.Op, w plan.Write) {
	r.giving[op] = true
	set := r.request(op, mad.MethodSet, w.Data)
	set.Once, set.Alone = true, true
	r.window.Do(set, func(written transact.Reply) {
		get := r.request(op, mad.MethodGet, [mad.DataSize]byte{})
		get.MKey = w.MKey
		r.window.Do(get, func(shown transact.Reply) {
			r.keyShown(op, w, written.Err, shown)
			r.next()
		})
	})
}

// keyShown judges what a port shows that was asked under its new key.
func (r *Run) keyShown(op plan.Op, w plan.Write, written error, shown transact.Reply) {
	delete(r.giving, op)
	err := shown.Err
	if err != nil {
		op.Port.MarkUnread(op.Attribute, op.Modifier)
		err = fmt.Errorf("%w, or not there: %w", ErrLocked, err)
	} else if err = op.Port.Absorb(op.Attribute, op.Modifier, shown.SMP.Data[:]); err == nil {
		switch {
		case op.Port.Info.MKey == w.MKey:
			op.Port.Key = w.MKey
			err = r.compareGuard(op, &w)
		case written != nil:
			err = fmt.Errorf("%w: the write: %w", ErrLocked, written)
		default:
			err = errors.New("device did not keep M_Key")
		}
	}
	if err != nil {
		r.fail(op, nil, err)
	}
}

// compareGuard looks at what else guards the port.
func (r *Run) compareGuard(op plan.Op, w *plan.Write) error {
	lost, err := lostElements(op, w)
	if err == nil && lost != 0 {
		err = fmt.Errorf("device did not keep %v", lost.Names())
	}
	return err
}
