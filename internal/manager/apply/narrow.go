package apply

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

var errElsewhere = errors.New("not written: another device answers there than the snapshot says")

// narrowing writes what takes away, to devices of a snapshot that may be out of
// date.
type narrowing struct {
	window *transact.Window
	plan   *plan.Plan
	failed func(Failure)
	// byDevice are the operations that wait for an answer, by the path to it.
	byDevice map[string][]plan.Op
}

// Narrow sends the writes of a plan that only takes away, each device asked who it
// is just before, and reads them back. It is over when the window is idle. failed
// is told of each write that did not hold.
func Narrow(w *transact.Window, p *plan.Plan, failed func(Failure)) {
	n := narrowing{window: w, plan: p, failed: failed, byDevice: make(map[string][]plan.Op)}
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			path := op.Port.Path.String()
			if n.byDevice[path] = append(n.byDevice[path], op); len(n.byDevice[path]) == 1 {
				n.askWho(op.Port, path)
			}
		}
	}
}

// askWho asks a device who it is, and then writes what there is to write to it.
func (n *narrowing) askWho(p *observed.Port, path string) {
	n.window.Do(transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodGet, Attribute: smp.AttrNodeInfo,
	}, func(r transact.Reply) {
		var info smp.NodeInfo
		err := r.Err
		if err == nil {
			err = info.UnmarshalBinary(r.SMP.Data[:])
		}
		if known := &p.Node.Info; err == nil && (info.NodeGUID != known.NodeGUID || p.Node.Switch == nil && (info.LocalPortNum != p.Num || info.PortGUID != p.GUID)) {
			err = errElsewhere
		}
		for _, op := range n.byDevice[path] {
			if err != nil {
				n.failed(Failure{Port: op.Port, Attribute: op.Attribute, Err: err})
			} else {
				n.takeAway(op)
			}
		}
		delete(n.byDevice, path)
	})
}

// takeAway carries out one operation and enters what the device shows then.
func (n *narrowing) takeAway(op plan.Op) {
	w, err := n.plan.Fill(op)
	if err != nil {
		return // what cannot be encoded is reported by the pass that follows
	}
	r := transact.Request{
		Path: op.Port.Path, Respond: op.Port.RespTime(), MKey: op.Port.MKey(), Method: mad.MethodSet,
		Attribute: op.Attribute, Modifier: op.Port.Modifier(op.Attribute, op.Modifier), Data: w.Data, Once: true, Alone: true,
	}
	op.Port.MarkUnread(op.Attribute, op.Modifier) // until it shows
	n.window.Do(r, func(reply transact.Reply) {
		if reply.Err != nil {
			n.failed(Failure{Port: op.Port, Attribute: op.Attribute, Err: reply.Err})
			return
		}
		r.Method, r.Data, r.Once, r.Alone = mad.MethodGet, [mad.DataSize]byte{}, false, false
		n.window.Do(r, func(reply transact.Reply) {
			err := reply.Err
			if err == nil {
				err = op.Port.Absorb(op.Attribute, op.Modifier, reply.SMP.Data[:])
			}
			if err != nil {
				n.failed(Failure{Port: op.Port, Attribute: op.Attribute, Err: fmt.Errorf("reading back: %w", err)})
			}
		})
	})
}
