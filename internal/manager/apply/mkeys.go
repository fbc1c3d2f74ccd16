package apply

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// ErrLocked says that a port obeys an M_Key that nobody here knows.
var ErrLocked = errors.New("guarded by an M_Key that is not known here")

// errWhichKey fails the writes to a port of which it is not known which of two keys it has: those
// with the wrong one would hold up all others for as long as they are tried. It counts as no
// answer, so that the port is asked again soon.
var errWhichKey = fmt.Errorf("not written: which M_Key it has is not known: %w", transact.ErrNoAnswer)

// giveKey gives a port another M_Key. Once the port has it, it accepts nothing else: when
// the answer is lost, all further copies of the write are refused. So each copy is sent by
// itself, and whatever its outcome the port is read with the new key, and that answer counts.
// Where the write was not answered it is read with the old key too: who shows that one is
// written to again, up to keyTries times.
func (r *Run) giveKey(op plan.Op, w plan.Write) {
	r.giving[op] = true
	r.offerKey(op, w, keyTries)
}

// keyTries is how often a key is written to a port that answers with the old one, in one pass.
const keyTries = 8

func (r *Run) offerKey(op plan.Op, w plan.Write, tries int) {
	set := r.request(op, mad.MethodSet, w.Data)
	set.Once, set.Alone, set.Probe = true, true, true
	r.window.Do(set, func(written transact.Reply) {
		lost := errors.Is(written.Err, transact.ErrNoAnswer)
		get := r.request(op, mad.MethodGet, [mad.DataSize]byte{})
		get.Probe = lost
		old := get
		get.MKey = w.MKey
		r.window.Do(get, func(shown transact.Reply) {
			if lost && shown.Err != nil && tries > 1 {
				r.window.Do(old, func(shown transact.Reply) {
					if shown.Err == nil {
						r.offerKey(op, w, tries-1)
						return
					}
					r.keyShown(op, w, written.Err, shown)
					r.next()
				})
				return
			}
			if lost && tries > 1 && !shows(shown, w.MKey) { // a device without a key answers to any
				r.offerKey(op, w, tries-1)
				return
			}
			r.keyShown(op, w, written.Err, shown)
			r.next()
		})
	})
}

// shows reports whether an answer has a key in it, as it has for whoever asks with that key.
func shows(r transact.Reply, key ib.MKey) bool {
	var info smp.PortInfo
	return r.Err == nil && info.UnmarshalBinary(r.SMP.Data[:]) == nil && info.MKey == key
}

// keyShown judges what a port shows that was asked under its new key.
func (r *Run) keyShown(op plan.Op, w plan.Write, written error, shown transact.Reply) {
	delete(r.giving, op)
	err := shown.Err
	if err != nil {
		op.Port.MarkUnread(op.Attribute, op.Modifier)
		op.Port.Offered = w.MKey
		if errors.Is(err, transact.ErrNoAnswer) { // it was read before, so it is slow or gone, not another manager's
			err = fmt.Errorf("whether it has taken its M_Key is not known: %w", err)
		} else {
			err = fmt.Errorf("%w: %w", ErrLocked, err)
		}
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
	lost, err := r.lostElements(op, w)
	if err == nil && lost != 0 {
		err = fmt.Errorf("device did not keep %v", lost.Names())
	}
	return err
}

// AskKey asks an end port that has one of two keys, Key or Offered, which of them it is: by
// PortInfo.M_Key, which it shows to whoever has the key. Each is sent once. known is called when
// it is known, at once where it was, or the port answers and shows neither; failed when it does
// not answer.
func AskKey(w *transact.Window, p *observed.Port, known, failed func()) {
	if p.Offered == 0 {
		known()
		return
	}
	open, answered, said := 2, false, false
	for _, key := range []ib.MKey{p.Key, p.Offered} {
		w.Do(transact.Request{
			Path: p.Path, Respond: p.RespTime(), MKey: key, Method: mad.MethodGet,
			Attribute: smp.AttrPortInfo, Modifier: p.Modifier(smp.AttrPortInfo, p.PortInfoBlock()), Probe: true,
		}, func(r transact.Reply) {
			open--
			answered = answered || r.Err == nil
			switch {
			case said: // by the first answer
			case p.Offered == 0: // another question was answered meanwhile
				said = true
				known()
			case shows(r, key):
				p.Key, p.Offered, said = key, 0, true
				known()
			case open > 0:
			case answered:
				p.Offered, said = 0, true
				known()
			default:
				failed()
			}
		})
	}
}
