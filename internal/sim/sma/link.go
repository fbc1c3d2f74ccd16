package sma

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Link is what two ports agreed on when their link trained.
type Link struct {
	Width    smp.LinkWidth
	Speed    smp.LinkSpeed    // 0 when SpeedExt is not
	SpeedExt smp.LinkSpeedExt // 0 when Speed is not
}

// widths from the widest down; the bits of LinkWidth are in another order.
var widths = []smp.LinkWidth{smp.LinkWidth12X, smp.LinkWidth8X, smp.LinkWidth4X, smp.LinkWidth2X, smp.LinkWidth1X}

// Train finds the widest and fastest link that both ports have enabled; ok is
// false when there is none, or when one of the ports does not look for a peer.
func Train(p, q *smp.PortInfo) (link Link, ok bool) {
	if p.PortPhysicalState != smp.PhysPolling || q.PortPhysicalState != smp.PhysPolling {
		return Link{}, false
	}
	common := p.LinkWidthEnabled & q.LinkWidthEnabled
	at := slices.IndexFunc(widths, func(w smp.LinkWidth) bool { return common&w != 0 })
	if at < 0 {
		return Link{}, false
	}
	link.Width = widths[at]
	link.SpeedExt = highest(p.LinkSpeedExtEnabled & q.LinkSpeedExtEnabled)
	if link.SpeedExt == 0 {
		link.Speed = highest(p.LinkSpeedEnabled & q.LinkSpeedEnabled)
	}
	return link, link.Speed != 0 || link.SpeedExt != 0
}

// highest is the highest bit of a set of speeds.
func highest[T smp.LinkSpeed | smp.LinkSpeedExt](set T) T {
	for set&(set-1) != 0 {
		set &= set - 1
	}
	return set
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
	p.info.LinkWidthActive, p.info.LinkSpeedActive, p.info.LinkSpeedExtActive = link.Width, link.Speed, link.SpeedExt
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
	said.LinkWidthActive, said.LinkSpeedActive, said.LinkSpeedExtActive = is.LinkWidthActive, is.LinkSpeedActive, is.LinkSpeedExtActive
	_ = said.Encode(&answer.Data) // of what was decoded: every value fits
}
