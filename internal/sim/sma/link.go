package sma

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Link is what two ports agreed on when their link trained.
type Link struct {
	Width     smp.LinkWidth
	Speed     smp.LinkSpeed // one of the three is not 0
	SpeedExt  smp.LinkSpeedExt
	SpeedExt2 smp.LinkSpeedExt2
}

// Train finds the widest and fastest link that both ports have enabled; ok is
// false when there is none, or when one of the ports does not look for a peer.
func Train(p, q *smp.PortInfo) (link Link, ok bool) {
	if p.PortPhysicalState != smp.PhysPolling || q.PortPhysicalState != smp.PhysPolling {
		return Link{}, false
	}
	speed := smp.FastestSpeed(p.LinkSpeedEnabled&q.LinkSpeedEnabled, p.LinkSpeedExtEnabled&q.LinkSpeedExtEnabled, p.LinkSpeedExtEnabled2&q.LinkSpeedExtEnabled2)
	if link.Width = smp.WidestWidth(p.LinkWidthEnabled & q.LinkWidthEnabled); link.Width == 0 || speed == smp.SpeedNone {
		return Link{}, false
	}
	link.Speed, link.SpeedExt, link.SpeedExt2 = speed.Bits()
	return link, true
}

// LinkUp tells the agent that the cable at port n has trained. The port goes
// from Down to Initialize.
func (a *Agent) LinkUp(now time.Duration, n ib.PortNum, link Link) []Effect {
	a.effects = a.effects[:0]
	p := a.port(n)
	if p == nil || !p.kind.hasCable() || p.info.PortPhysicalState != smp.PhysPolling {
		return nil
	}
	p.info.PortPhysicalState = smp.PhysLinkUp
	a.SetTraining(n, false)
	p.unlocked = false
	p.info.LinkWidthActive, p.info.LinkSpeedActive, p.info.LinkSpeedExtActive, p.info.LinkSpeedExtActive2 = link.Width, link.Speed, link.SpeedExt, link.SpeedExt2
	a.changeState(p, n, smp.PortInit)
	a.noteLink(now)
	return a.effects
}

// LinkDown tells the agent that the cable at port n has lost its peer, or that
// the peer has given up the link. The port goes to LinkDownDefaultState.
func (a *Agent) LinkDown(now time.Duration, n ib.PortNum) []Effect {
	a.effects = a.effects[:0]
	p := a.port(n)
	if p == nil || !p.kind.hasCable() || p.info.PortState == smp.PortDown {
		return nil
	}
	p.info.PortPhysicalState = p.info.LinkDownDefaultState
	a.changeState(p, n, smp.PortDown)
	a.noteLink(now)
	return a.effects
}

// noteLink records that a link of a switch changed by itself. Changes that a
// Set made are no news to the manager.
func (a *Agent) noteLink(now time.Duration) {
	if a.fabric == nil {
		return
	}
	a.fabric.info.PortStateChange = true
	a.raise(now, 0, smp.TrapLinkStateChanged, &smp.LinkStateDetails{LID: a.ports[0].info.LID})
}

// changeState gives the link layer of a port another state.
func (a *Agent) changeState(p *port, n ib.PortNum, state smp.PortState) {
	if p.info.PortState == state {
		return
	}
	p.info.PortState = state
	a.effect(Effect{Kind: StateChanged, Port: n})
}

// moveLink gives the physical layer of a port another state. Even when it was
// polling before, the fabric is told: the other end may have something to try.
func (a *Agent) moveLink(p *port, n ib.PortNum, phys smp.PhysState) {
	p.info.PortPhysicalState = phys
	a.changeState(p, n, smp.PortDown)
	a.effect(Effect{Kind: LinkMoved, Port: n})
}

// ShowLink brings the answer to a Set of PortInfo that moved the link of port n
// up to date with what has become of the link since.
func (a *Agent) ShowLink(n ib.PortNum, answer *mad.SMP) {
	p := a.port(n)
	var said smp.PortInfo
	if p == nil || said.UnmarshalBinary(answer.Data[:]) != nil {
		return
	}
	is := &p.info
	said.PortState, said.PortPhysicalState = is.PortState, is.PortPhysicalState
	said.LinkWidthActive, said.LinkSpeedActive, said.LinkSpeedExtActive, said.LinkSpeedExtActive2 = is.LinkWidthActive, is.LinkSpeedActive, is.LinkSpeedExtActive, is.LinkSpeedExtActive2
	_ = said.Encode(&answer.Data) // of what was decoded: every value fits
}
