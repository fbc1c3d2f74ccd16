package engine

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/bound"
	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// peers is the state of other managers with a profile: only named managers count, those
// listed in Config.Trusted or proven by Config.SMKeys, at the port that they claim.
type peers struct {
	// talk has what managers tell each other. A pass never waits for it, only a
	// manager that is not master yet.
	talk *transact.Window
	// polls has what an election rests on, polls and control packets: however
	// many say nothing when they are asked, these do not wait for them.
	polls *transact.Window
	// rounds is how many rounds of questions there were, pending how many
	// questions of the last are open, again that another is wanted after it, and
	// undecided that it was not judged yet.
	rounds, pending   int
	again, undecided  bool
	askedAt           time.Duration
	here              []election.Remote       // who counts, by the last round
	silent            map[observed.Place]bool // listed, and did not answer
	newcomer          bool                    // Config.Newcomer, until it has a place among managers
	incumbent         *observed.Port          // the master that a newcomer found
	rogues            election.Rogues
	looks             map[observed.Place]*capLook
	clock             time.Duration // when the engine was last told the time
	sharing           bool          // another that counts is master too
	stoodBy           string        // why this manager stands by no more
	shared, inherited *bound.Bound
}

const (
	// talkWindow is the most requests to managers that are outstanding at once, and
	// talkTries the times that one is sent. An idle manager answers in microseconds, and
	// one that does not must not delay the first election.
	talkWindow = 64
	talkTries  = 4
	// electionWait is how long a manager that is not master waits for answers: any number
	// of hosts may set IsSM and not answer.
	electionWait = 3 * time.Second
)

// named reports whether only named managers count.
func (e *Engine) named() bool { return e.config.Profile != protect.None }

func (e *Engine) openTalk(c Config) {
	limits := c.Limits
	limits.Window, limits.Tries = min(limits.Window, talkWindow), min(limits.Tries, talkTries)
	e.peers = peers{
		talk: transact.NewWindow(limits), polls: transact.NewWindow(limits), newcomer: c.Newcomer && !c.Known.Managed, silent: make(map[observed.Place]bool),
		rogues: make(election.Rogues), looks: make(map[observed.Place]*capLook),
	}
	seed := c.Seed
	seed[0] ^= 0xFF // not the identifiers of the other windows
	e.talk.Seed(seed)
	seed[1] ^= 0xFF
	e.polls.Seed(seed)
}

// mayCount reports whether a manager behind p counts if it proves its identity, and if
// not, why.
func (e *Engine) mayCount(p *observed.Port) (ok bool, why string) {
	listed := slices.Contains(e.config.Trusted, p.GUID)
	switch {
	case !listed && e.config.SMKeys == nil:
		return false, rogueThere
	case p.Node.Contested || facts.SharesGUID(e.ends, p):
		if listed {
			return false, rogueTwin
		}
		return false, rogueThere
	case e.cabling.list.IsMisplaced(p):
		if listed {
			return false, rogueMisplaced
		}
		return false, rogueThere
	}
	return true, ""
}

// askPeers reads SMInfo of every manager that may count. The current round is finished
// first, so that new requests cannot keep it from ending.
func (e *Engine) askPeers() {
	if e.managers == nil || e.fabric == nil {
		return
	}
	if e.pending > 0 {
		e.again = true
		return
	}
	e.rounds++
	e.again, e.undecided, e.here, e.incumbent = false, true, nil, nil
	e.askedAt = e.clock
	var questions []*observed.Port
	for _, p := range e.ends {
		if !e.isRival(p) {
			continue
		}
		if may, why := e.mayCount(p); may {
			questions = append(questions, p)
		} else {
			e.alarm(p, why, true)
			e.askIncumbent(p)
		}
	}
	slices.SortStableFunc(questions, func(p, q *observed.Port) int {
		listed := func(x *observed.Port) int {
			if slices.Contains(e.config.Trusted, x.GUID) {
				return 0
			}
			return 1
		}
		return listed(p) - listed(q)
	})
	if len(questions) > 0 && !e.isMaster() {
		e.begin(event.PhaseElect)
	}
	for _, p := range questions {
		at, guid, path := p.Place(), p.GUID, p.Path
		e.pending++
		e.askPeer(p, e.managers.InfoFor(guid), func(info smp.SMInfo, err error) {
			e.pending--
			e.peerAnswered(at, election.Remote{Info: info, Address: election.Address{Path: path, Port: guid}}, err)
		})
	}
}

// askPeer sends a Get of SMInfo that identifies this manager. It carries no M_Key, since
// a program on a host answers it.
func (e *Engine) askPeer(p *observed.Port, own smp.SMInfo, then func(smp.SMInfo, error)) {
	r := transact.Request{Path: p.Path, Method: mad.MethodGet, Attribute: smp.AttrSMInfo}
	if err := own.Encode(&r.Data); err != nil {
		e.emit(event.Warned{Text: err.Error()})
	}
	e.talk.Do(r, func(reply transact.Reply) {
		var info smp.SMInfo
		err := reply.Err
		if err == nil {
			err = info.UnmarshalBinary(reply.SMP.Data[:])
		}
		then(info, err)
	})
}

// peerAnswered handles the answer of a manager that may count.
func (e *Engine) peerAnswered(at observed.Place, r election.Remote, err error) {
	p := e.fabric.At(at)
	if p == nil || p.GUID != r.Address.Port {
		return // something else is there by now
	}
	switch {
	case err == nil && e.managers.Counts(r):
		delete(e.silent, at)
		if e.rogues[at] != nil {
			delete(e.rogues, at)
			e.emit(event.Warned{Text: facts.Where(p) + " has shown that it is a manager that counts"})
		}
		e.here = append(e.here, r)
	case err == nil:
		e.alarm(p, rogueUnproven, true)
	case !slices.Contains(e.config.Trusted, p.GUID):
		e.alarm(p, rogueSilent, true)
	case !e.silent[at]:
		e.silent[at] = true
		e.emit(event.Warned{Text: p.String() + " says it has a subnet manager, but: " + err.Error()})
	}
	if err != nil || !e.managers.Counts(r) {
		e.isIncumbent(p, r.Info, err)
	}
}

// askIncumbent asks a manager that is not named for its state, if this manager is new to
// the subnet. The request does not identify this manager.
func (e *Engine) askIncumbent(p *observed.Port) {
	if !e.newcomer || e.isMaster() {
		return
	}
	at := p.Place()
	e.pending++
	e.askPeer(p, smp.SMInfo{}, func(info smp.SMInfo, err error) {
		e.pending--
		if p := e.fabric.At(at); p != nil {
			e.isIncumbent(p, info, err)
		}
	})
}

// isIncumbent records the port of the present master: by its SMInfo or, if it does not
// answer, by MasterSMLID of this manager's own port.
func (e *Engine) isIncumbent(p *observed.Port, info smp.SMInfo, err error) {
	self := e.fabric.Self
	told := self.InfoRead && p.InfoRead && self.Info.MasterSMLID != ib.LIDReserved && self.Info.MasterSMLID == p.Info.LID
	if e.newcomer && !e.isMaster() && (err == nil && info.SMState == smp.SMMaster || err != nil && told) {
		e.incumbent = p
	}
}

// awaitsPeers reports whether an election waits for answers. A master does not wait: it
// goes on monitoring, and decides when the answers are there.
func (e *Engine) awaitsPeers() bool {
	return e.named() && e.pending > 0 && !e.isMaster() && e.clock < e.askedAt+electionWait
}

// electedNamed goes on as master, stands by, or leaves a subnet to its present master.
func (e *Engine) electedNamed(now time.Duration) {
	if !e.isMaster() {
		if p := e.incumbent; p != nil {
			e.emit(event.Unexpected{Port: p.GUID, At: facts.Where(p)})
			e.rest(now, stateRefused)
			e.retryAt = now + e.config.DriftPeriod
			return
		}
		e.newcomer = false
		e.answerHeld(now)
		if why, master := e.decide(now); !master {
			e.stoodBy = ""
			var guid ib.PortGUID
			for _, r := range e.here {
				if r.Info.SMState == smp.SMMaster {
					guid = r.Info.GUID
				}
			}
			e.emit(event.Deferred{Master: guid, Reason: why})
			e.rest(now, stateStandby)
			return
		}
	}
	if e.config.Hold {
		e.rest(now, stateHeld)
	} else {
		e.proceed(now)
	}
}

// decide evaluates the last round. why is the verdict in words.
func (e *Engine) decide(now time.Duration) (why string, master bool) {
	e.undecided = e.pending > 0
	e.rivals = make(map[*observed.Port]smp.SMInfo, len(e.here))
	for _, r := range e.here {
		if i := slices.IndexFunc(e.ends, func(p *observed.Port) bool { return p.GUID == r.Info.GUID }); i >= 0 {
			r.Info.SMKey = 0 // what is told of it has no key
			e.rivals[e.ends[i]] = r.Info
		}
	}
	verdict, effects := e.managers.Decide(now, e.here)
	e.follow(effects)
	if e.isMaster() {
		e.share(verdict != election.Master)
	}
	return verdict.String() + ", " + effects.Why, e.isMaster()
}

// decidePeers evaluates a round that ended while this manager was master, and begins the
// next one.
func (e *Engine) decidePeers(now time.Duration) {
	e.clock = max(e.clock, now)
	if e.named() && e.pending == 0 && e.isMaster() {
		if e.undecided {
			e.decide(now)
		}
		if e.again {
			e.askPeers()
		}
	}
	e.startCapLooks()
}

// owner is the window that a request belongs to.
func (e *Engine) owner(p *mad.SMP) *transact.Window {
	for _, w := range []*transact.Window{e.talk, e.polls, e.side} {
		if w.Owns(p) {
			return w
		}
	}
	return e.window
}

// nextWindow returns the window of the next request, whose packet is in p; nil when there
// is none.
func (e *Engine) nextWindow(now time.Duration, p *mad.SMP) *transact.Window {
	for _, w := range []*transact.Window{e.polls, e.talk, e.window} {
		if w.Next(now, p) {
			return w
		}
	}
	return nil
}
