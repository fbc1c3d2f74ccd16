package engine

import (
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/fence"
	"github.com/ibwarden/ibwarden/internal/manager/peers"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// host is the engine as its peers see it.
type host struct{ *Engine }

func (h host) Ends() []*observed.Port                            { return h.ends }
func (h host) Holder(lid ib.LID) *observed.Port                  { return h.holder(lid) }
func (h host) Emit(ev event.Event)                               { h.emit(ev) }
func (h host) Begin(phase string)                                { h.begin(phase) }
func (h host) WantSweep(reason string)                           { h.agenda.wantSweep(reason) }
func (h host) WantElection(reason string)                        { h.agenda.wantElection(reason) }
func (h host) Answer(p mad.SMP, dlid ib.LID)                     { h.answer(p, dlid) }
func (h host) Waiting() (n, most int)                            { return len(h.outbox), outboxMax }
func (h host) Withholds(m election.Message) bool                 { return h.delaysHandover(m) }
func (h host) Shared(shared bool)                                { h.nap.ToldOfMasters(!shared); h.share(shared) }
func (h host) Restate()                                          { h.agenda.restate = true }
func (h host) Fences() []fence.Fence                             { return h.fences() }
func (h host) Ask(r transact.Request, then func(transact.Reply)) { h.window.Do(r, then) }

// Rules are what tables are made of, of which partners tell each other.
func (h host) Rules() peers.Rules {
	c := &h.config
	return peers.Rules{Policy: h.wanted(), Numbers: h.known.PKeys, Besides: peers.Besides{Profile: c.Profile.String(), Routing: string(c.Routing), LMC: uint8(c.LMC), GIDPrefix: c.GIDPrefix}}
}

// Probe looks whether devices answer that did not.
func (h host) Probe() {
	if h.watches() {
		h.probe()
		for _, p := range h.silent {
			h.probeBehind(p, true, h.linkMute)
		}
	}
}

// Follow acts on a change of the state in the election.
func (h host) Follow(f election.Effects) {
	h.right.Master(h.now, f.To == smp.SMMaster)
	if f.From == smp.SMStandby && (f.To == smp.SMDiscovering || f.To == smp.SMMaster) {
		h.succeed(f)
		h.emit(event.TakingOver{From: f.Former, Reason: f.Why})
	}
	if f.From == smp.SMMaster && f.To != smp.SMMaster {
		h.window.ReadOnly(true) // the next one may have written otherwise before a Set is sent again
		h.standby, h.leading, h.agenda.retryAt = standby{}, leading{}, h.now+watch.StandbyReads
		h.emit(event.Deferred{Reason: f.Why})
		h.resign()
	}
	if f.To == smp.SMMaster {
		h.window.ReadOnly(h.right.Halted())
	}
	h.restoreKeys()
}

func (e *Engine) openPeers(c Config) {
	e.peers = peers.New(peers.Config{
		Limits: c.Limits, Seed: c.Seed, Profile: c.Profile, Newcomer: c.Newcomer && !c.Known.Managed,
		Election: election.Config{
			Priority: c.Priority, SMKey: c.SMKey, ShowKey: c.ShowSMKey, Trusted: c.Trusted, Key: c.SMKeys,
			MasterTimeout: c.MasterTimeout,
		},
		Vouches: c.Vouches,
	}, host{e})
}

// startElection reads SMInfo of every other port with IsSM set.
func (e *Engine) startElection(now time.Duration) {
	e.step(onMasterUnknown)
	e.agenda.election = ""
	e.peers.Close()
	if err := e.lockedOut(e.fabric); err != nil {
		e.peers.Mute()
		e.lockOut(now, err)
		return
	}
	if err := e.enterElection(); err != nil {
		e.peers.Mute()
		e.refuse(now, nil, err)
		return
	}
	e.peers.Begin(now)
}

// enterElection checks that this manager can take part in the election; otherwise it may
// not write.
func (e *Engine) enterElection() error {
	if e.fabric.Self == nil {
		return errors.New("the manager's own port did not answer")
	}
	return e.peers.Err()
}

// elected goes on as master, or goes to standby.
func (e *Engine) elected(now time.Duration) {
	if e.peers.Named() {
		e.electedNamed(now)
		return
	}
	if why, master := e.peers.DecideBelieved(now); !master {
		e.standBy(now, event.Deferred{Master: e.peers.Master(), Reason: why})
		return
	}
	e.lead(now)
}

// electedNamed goes on as master, stands by, or leaves a subnet to its present master.
func (e *Engine) electedNamed(now time.Duration) {
	if !e.isMaster() {
		if p := e.peers.Incumbent(); p != nil {
			e.emit(event.Unexpected{Port: p.GUID, At: facts.Where(p)})
			e.rest(now, onUnexpectedMaster)
			e.agenda.retryAt = now + e.config.DriftPeriod
			return
		}
		e.peers.Settle(now)
		if why, master := e.peers.Decide(now); !master {
			e.standBy(now, event.Deferred{Master: e.peers.Master(), Reason: why})
			return
		}
	}
	e.lead(now)
}

// isMaster reports whether this manager may write.
func (e *Engine) isMaster() bool { return e.peers.IsMaster() }

// resign ends all writing, since only a master writes.
func (e *Engine) resign() {
	switch e.state {
	case stateWatching, stateHeld:
		e.step(onDeposed)
	case statePausing:
		e.step(onDeposed)
		e.discovery = nil
	case stateSweeping:
		e.discovery.WriteNothing()
	case stateApplying, stateKeying, stateReleasing, stateAnnouncing:
		if e.run != nil { // none while a LID moves
			e.run.Stop()
		}
	}
}

// tickPeers advances the time of the election.
func (e *Engine) tickPeers(now time.Duration) {
	if e.state != stateReleasing { // an offer stands until it can be sent
		e.peers.Tick(now)
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
	if w := e.peers.Window(p); w != nil {
		return w
	}
	if e.side.Owns(p) {
		return e.side
	}
	return e.window
}

// nextWindow returns the window of the next request, whose packet is in p; nil when there
// is none.
func (e *Engine) nextWindow(now time.Duration, p *mad.SMP) *transact.Window {
	if w := e.peers.Next(now, p); w != nil {
		return w
	}
	if !e.nap.On() && e.window.Next(now, p) {
		return e.window
	}
	return nil
}
