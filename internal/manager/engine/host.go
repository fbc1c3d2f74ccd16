package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// host is the engine as its peers see it.
type host struct {
	*Engine
	facts mastership.Facts // as they were told last
}

func (h *host) Facts() *mastership.Facts {
	h.facts = mastership.Facts{Fabric: h.fabric, Ends: h.ends, Cables: h.cabling.list, Fences: h.known.Fences}
	return &h.facts
}
func (h *host) Emit(ev event.Event)                               { h.emit(ev) }
func (h *host) Answer(p mad.SMP, dlid ib.LID, share int)          { h.answer(p, dlid, share) }
func (h *host) Withholds(m mastership.Message) bool               { return h.delaysHandover(m) }
func (h *host) Shared(shared bool)                                { h.master.Nap.ToldOfMasters(!shared); h.share(shared) }
func (h *host) Ask(r transact.Request, then func(transact.Reply)) { h.window.Do(r, then) }

// Want notes what managers that came or went ask for.
func (h *host) Want(w mastership.Want, why string) {
	switch w {
	case mastership.WantSweep:
		h.agenda.wantSweep(why)
	case mastership.WantElection:
		h.agenda.wantElection(why)
	case mastership.WantProof:
		h.agenda.restate = true
	case mastership.WantProbe:
		h.probeSilent()
	}
}

// Rules are what tables are made of, of which partners tell each other.
func (h *host) Rules() mastership.Rules {
	c := &h.config
	return mastership.Rules{Policy: h.wanted(), Numbers: h.known.PKeys, Besides: mastership.Besides{Profile: c.Profile.String(), Routing: string(c.Routing), LMC: uint8(c.LMC), GIDPrefix: c.GIDPrefix}}
}

// probeSilent looks whether devices answer that did not.
func (h *host) probeSilent() {
	if h.watches() {
		h.probe()
		for _, p := range h.silent {
			h.probeBehind(p, true, h.linkMute)
		}
	}
}

// Follow acts on a change of the state in the election.
func (h *host) Follow(f mastership.Effects) {
	h.master.Became(h.now, f)
	if f.From == smp.SMStandby && (f.To == smp.SMDiscovering || f.To == smp.SMMaster) {
		h.succeed(f)
		h.emit(event.TakingOver{From: f.Former, Reason: f.Why})
	}
	if f.From == smp.SMMaster && f.To != smp.SMMaster {
		h.standby, h.ownLID, h.agenda.retryAt = standby{}, ownLID{}, h.now+watch.StandbyReads
		h.hosts.succeeds, h.hosts.unasked = false, false
		h.emit(event.Deferred{Reason: f.Why})
		h.phase.resign(h.Engine)
	}
	h.restoreKeys()
}

func (e *Engine) openMastership(c Config) {
	x := &c.Election
	e.master = mastership.Open(mastership.Config{
		Limits: c.Limits, Seed: c.Seed, Profile: c.Profile, Newcomer: x.Newcomer && !c.Known.Managed, Vouches: x.Vouches,
		Election: mastership.ElectionConfig{
			Priority: x.Priority, SMKey: x.SMKey, ShowKey: x.ShowSMKey, Trusted: x.Trusted, Key: x.SMKeys, MasterTimeout: x.MasterTimeout,
		},
	}, &host{Engine: e}, x.Lease, e.window, e.beside.window)
}

// isMaster reports whether this manager is master. Whether it may write now, MayWrite reports.
func (e *Engine) isMaster() bool { return e.master.IsMaster() }

// tickPeers advances the time of the election.
func (e *Engine) tickPeers(now time.Duration) {
	if e.state() != stateReleasing { // an offer stands until it can be sent
		e.master.Tick(now)
	}
}

// ownerOf is the end port that has a LID; nil when none has, or two, or when the manager
// assigned it another.
func (e *Engine) ownerOf(lid ib.LID) *observed.Port {
	if e.fabric == nil {
		return nil
	}
	return e.holder(lid)
}

// owner is the window that a request belongs to.
func (e *Engine) owner(p *mad.SMP) *transact.Window {
	if w := e.master.Window(p); w != nil {
		return w
	}
	if e.beside.window.Owns(p) {
		return e.beside.window
	}
	return e.window
}

// nextWindow returns the window of the next request, whose packet is in p; nil when there
// is none.
func (e *Engine) nextWindow(now time.Duration, p *mad.SMP) *transact.Window {
	if w := e.master.Next(now, p); w != nil {
		return w
	}
	if !e.master.Nap.On() && e.window.Next(now, p) {
		return e.window
	}
	return nil
}

// OnSend makes f see every request that leaves, retries included.
func (e *Engine) OnSend(f func(mad.Method, mad.AttributeID)) {
	for _, w := range e.windows() {
		w.OnSend = f
	}
}

// OnEnd makes f see how every request ended, as transact.Reply has it.
func (e *Engine) OnEnd(f func(method mad.Method, attribute mad.AttributeID, err error)) {
	for _, w := range e.windows() {
		w.OnEnd = f
	}
}

func (e *Engine) windows() []*transact.Window {
	return append([]*transact.Window{e.window, e.beside.window}, e.master.Windows()...)
}

// Counts is what the request windows have done.
func (e *Engine) Counts() transact.Counts {
	return e.window.Counts().Plus(e.beside.window.Counts()).Plus(e.master.Counts())
}
