package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/service"
)

const (
	// managersWait is how long other managers may take to answer who asks for all of
	// them, and managersLook the time between two looks whether they have.
	managersWait = 2 * time.Second
	managersLook = 20 * time.Millisecond
	// actGap is the time between two questions to a manager whose ActCount is compared.
	actGap = 100 * time.Millisecond
	// handOverWait is how long a handover may take, from the question to the answer of
	// the new master.
	handOverWait = 20 * time.Second
)

// Managers asks every manager of the fabric for its state, and returns what is known of
// each by then. Those that have not answered after managersWait are silent.
func (s *Served) Managers(ctx context.Context) ([]observed.SubnetManager, error) {
	var list []observed.SubnetManager
	end := time.Now().Add(managersWait)
	for round := range 2 {
		if err := s.askManagers(ctx, end, &list); err != nil {
			return nil, err
		}
		if list == nil {
			return nil, service.ErrNotRead
		}
		again := false
		for i := range list {
			again = again || list[i].Answered && !list[i].Compared
		}
		if !again || round > 0 {
			break
		}
		if err := pause(ctx, actGap); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// AskOthers has the engine ask the other managers for their state. It does not wait for
// their answers.
func (s *Served) AskOthers(ctx context.Context) error {
	r, err := s.running()
	if err != nil {
		return err
	}
	return r.Ask(ctx, func(e *engine.Engine) { e.AskManagers() })
}

// askManagers asks all managers, waits for their answers, and notes what is known then.
func (s *Served) askManagers(ctx context.Context, end time.Time, list *[]observed.SubnetManager) error {
	err := s.runner.Ask(ctx, func(e *engine.Engine) { e.AskManagers() })
	for open := 1; err == nil && open > 0; {
		err = s.runner.Ask(ctx, func(e *engine.Engine) { *list, open = e.Managers(), e.Asking() })
		if err != nil || open == 0 || time.Now().After(end) {
			break
		}
		err = pause(ctx, managersLook)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// proved is the last revision that was proved, if some was.
type proved struct {
	revision uint64
	some     bool
}

// ProvedRevision is the last revision that this manager has proved on the fabric; false
// for none in this run.
func (s *Served) ProvedRevision() (revision uint64, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proved.revision, s.proved.some
}

// prove notes that a revision is proved.
func (s *Served) prove(revision uint64, o service.Outcome) {
	if o.Verdict.Holds() && o.Failures == 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.proved = proved{revision, true}
	}
}

// Standby is who would be handed the subnet: the manager at a port, or for 0 the standby
// that ranks highest among those that count. The error says why nobody would.
func (s *Served) Standby(ctx context.Context, to ib.PortGUID) (*observed.SubnetManager, error) {
	list, err := s.Managers(ctx)
	if err != nil {
		return nil, err
	}
	var best *observed.SubnetManager
	for i := range list {
		m := &list[i]
		if m.Trust == observed.TrustSelf && m.State != smp.SMMaster {
			return nil, &service.NotHandedOver{Reason: "this manager is " + m.State.String() + ", not master: ask the master"}
		}
		if m.Trust == observed.TrustSelf || !m.Counts() || !m.Answered || m.Missed > 0 || m.State != smp.SMStandby || to != 0 && m.Port != to {
			continue
		}
		if best == nil || m.Priority > best.Priority || m.Priority == best.Priority && m.Port < best.Port {
			best = m
		}
	}
	if best == nil {
		return nil, &service.NotHandedOver{Reason: mastership.NoStandby(list, to).Error()}
	}
	return best, nil
}

// HandOver hands the subnet over to the standby at a port, and returns when it is master,
// or when it is known that it will not be. Then this manager is master still, with its
// rank. The error is a *service.NotHandedOver when it
// is not handed over.
func (s *Served) HandOver(ctx context.Context, to ib.PortGUID) (master bool, err error) {
	ctx, stop := context.WithTimeout(ctx, handOverWait)
	defer stop()
	for begun := false; !begun; {
		var refused error
		if err := s.runner.Ask(ctx, func(e *engine.Engine) { _, refused = e.HandOver(to) }); err != nil {
			return false, err
		}
		switch {
		case refused == nil:
			begun = true
		case !errors.Is(refused, mastership.ErrAsking) || pause(ctx, managersLook) != nil:
			return false, &service.NotHandedOver{Reason: refused.Error()}
		}
	}
	for {
		var state smp.SMState
		var failed string
		asked := s.runner.Ask(ctx, func(e *engine.Engine) {
			state = e.Status().State
			_, failed = e.SteppedDown()
			for _, m := range e.Managers() {
				master = master || m.Port == to && m.IsMaster()
			}
		})
		switch {
		case asked != nil:
			return false, asked
		case state == smp.SMMaster && failed != "":
			return false, &service.NotHandedOver{Reason: failed + ": this manager is master still"}
		case state != smp.SMMaster && master:
			return true, nil
		}
		if err := pause(ctx, managersLook); err != nil {
			if state != smp.SMMaster {
				return false, nil // it was handed over; the new one has not said that it is master
			}
			return false, err
		}
	}
}

// FabricManagers reads a fabric and asks every manager on it for its state, twice, so
// that ActCount can be compared. Nothing is written. Where the options have a master
// secret, managers that share it are known by that, and are told who asks.
func FabricManagers(ctx context.Context, l link.Link, o sweep.Options, progress func(sent int)) ([]observed.SubnetManager, []sweep.Fault, *observed.Fabric, error) {
	r, err := ReadShowing(ctx, l, o, progress)
	if err != nil {
		return nil, nil, nil, err
	}
	var ring *mkey.Ring
	if k, is := o.Keys.(*mkey.Keys); is && k != nil {
		ring = k.Ring
	}
	ends := r.Fabric.EndPorts()
	var asked []*observed.Port
	var list []observed.SubnetManager
	for _, p := range ends {
		if !p.InfoRead || !p.Info.CapabilityMask.Has(smp.CapIsSM) {
			continue
		}
		asked = append(asked, p)
		list = append(list, observed.SubnetManager{
			Port: p.GUID, Node: p.Node.GUID(), Name: p.Node.Name(), Num: p.Num, LID: p.Info.LID, IsSM: true, Trust: observed.TrustUnknown,
		})
	}
	for round := range 2 {
		if round > 0 {
			if err := pause(ctx, actGap); err != nil {
				return nil, nil, nil, err
			}
		}
		if err := askEach(ctx, l, r.Fabric, ring, asked, list); err != nil {
			return nil, nil, nil, err
		}
	}
	return list, r.Faults, r.Fabric, nil
}

// askEach asks the managers behind ports for SMInfo, and enters what they answer into the
// list.
func askEach(ctx context.Context, l link.Link, f *observed.Fabric, ring *mkey.Ring, ports []*observed.Port, list []observed.SubnetManager) error {
	a := NewAsking(l)
	for i, p := range ports {
		m := &list[i]
		r := transact.Request{Path: p.Path, Respond: p.RespTime(), Method: mad.MethodGet, Attribute: smp.AttrSMInfo}
		var shared ib.SMKey
		if ring != nil && f.Self != nil && f.Self != p {
			own := smp.SMInfo{GUID: f.Self.GUID, SMKey: ring.SMKey(f.Self.GUID, p.GUID)}
			if err := own.Encode(&r.Data); err != nil {
				return err
			}
			shared = ring.SMKey(p.GUID, f.Self.GUID)
		}
		a.Window.Do(r, func(reply transact.Reply) {
			var info smp.SMInfo
			if reply.Err != nil || info.UnmarshalBinary(reply.SMP.Data[:]) != nil {
				m.Missed++
				return
			}
			if shared != 0 && info.SMKey == shared && info.GUID == m.Port {
				m.Trust = observed.TrustShared
			}
			m.Hear(&info)
		})
	}
	return l.Drive(ctx, a, a.Window.Idle)
}
