package mastership

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Peers are the other managers of a subnet, as one manager knows them.
type Peers struct {
	config Config
	host   Host
	// election is nil until the manager's own port is known.
	election     *Election
	responder    responder
	priorityTrap priorityTrap

	// talk has what managers tell each other. A pass never waits for it, only a
	// manager that is not master yet.
	talk *transact.Window
	// polls has what an election rests on, polls and control packets: however
	// many say nothing when they are asked, these do not wait for them.
	polls    *transact.Window
	round    round
	gaveUp   ib.PortGUID              // the master that this manager gave up, until it is heard again
	silent   map[observed.Place]bool  // listed, and did not answer
	newcomer bool                     // Config.Newcomer, until it has a place among managers
	doubts   map[observed.Place]doubt // masters that are asked again for a proof
	rogues   Rogues
	looks    map[observed.Place]*capLook
	claims   map[observed.Place]*claim // by standing
	judging  bool                      // the claims
	unnamed  unnamed
	clock    time.Duration // when the manager was last told the time
	voices   map[observed.Place]*voice
	asking   int // questions of AskAll that are open
	assent   assent
	probed   time.Duration // when Host.Probe was called last

	rivals map[*observed.Port]smp.SMInfo // other managers in the last election, zero where none answered
	others []Remote                      // those that answered, without a profile
	policies
	// StoodBy says why this manager stands by no more, until its tables were read, and
	// Other that the master that it stood by for had another policy.
	StoodBy string
	Other   bool
	// Stored reports whether a store which managers share has the policy in force, whatever
	// reached each of them last: Other is not set then.
	Stored bool
}

// round is the last round of questions to managers that may count.
type round struct {
	// count is how many there were, pending how many questions of it are open, again that another is
	// wanted after it, and undecided that it was not judged yet.
	count, pending   int
	again, undecided bool
	waits            map[observed.Place]time.Duration // until when an election waits for the questions that are open
	here             []Remote                         // who counts
	partners         int                              // of them that share the secret, when it had ended, and 1 where one has asked since
	incumbent        *observed.Port                   // the master that a newcomer found
}

const (
	// talkWindow is the most requests to managers that are outstanding at once, and
	// talkTries the times that one is sent. An idle manager answers in microseconds, and
	// one that does not must not delay the first election.
	talkWindow = 64
	talkTries  = 4
	// electionWait is how long a manager that is not master waits for answers: any number
	// of hosts may set IsSM and not answer. One that takes over from a master that does not
	// answer waits for Config.Election.MasterTimeout only, but for managers that are listed.
	electionWait = 3 * time.Second
)

// Named reports whether only named managers count.
func (x *Peers) Named() bool { return x.config.Profile != protect.None }

// New returns the peers of a manager that knows of none yet.
func New(c Config, host Host) *Peers {
	limits := c.Limits
	limits.Window, limits.Tries = min(limits.Window, talkWindow), min(limits.Tries, talkTries)
	x := &Peers{
		config: c, host: host,
		talk: transact.NewWindow(limits), polls: transact.NewWindow(limits), newcomer: c.Newcomer, silent: make(map[observed.Place]bool), doubts: make(map[observed.Place]doubt),
		rogues: make(Rogues), looks: make(map[observed.Place]*capLook), claims: make(map[observed.Place]*claim),
		voices: make(map[observed.Place]*voice),
	}
	seed := c.Seed
	seed[0] ^= 0xFF // not the identifiers of the other windows
	x.talk.Seed(seed)
	seed[1] ^= 0xFF
	x.polls.Seed(seed)
	return x
}

// MayCount reports whether a manager behind p counts if it proves its identity, and if
// not, why.
func (x *Peers) MayCount(p *observed.Port) (ok bool, why string) {
	listed := slices.Contains(x.config.Election.Trusted, p.GUID)
	switch {
	case !listed && x.config.Election.Key == nil:
		return false, rogueThere
	case p.Node.Contested || facts.SharesGUID(x.host.Facts().Ends, p):
		return false, rogueTwin
	case x.host.Facts().Cables.IsMisplaced(p):
		if listed {
			return false, rogueMisplaced
		}
		return false, rogueThere
	}
	return true, ""
}

// AskAgain is Ask, and returns how many rounds have to end until one has that was begun now.
func (x *Peers) AskAgain() (rounds int) {
	rounds = 1
	if x.round.pending > 0 || x.round.undecided {
		rounds = 2
	}
	x.Ask()
	return rounds
}

// HasPartners reports whether a manager shares the secret, by the last round, or has asked
// since.
func (x *Peers) HasPartners() bool { return x.round.partners > 0 }

// Ask reads SMInfo of every manager that may count. The current round is finished
// first, so that new requests cannot keep it from ending.
func (x *Peers) Ask() {
	if x.election == nil || x.host.Facts().Fabric == nil {
		return
	}
	if x.round.pending > 0 {
		x.round.again = true
		return
	}
	x.round.count++
	x.round.again, x.round.undecided, x.round.here, x.round.incumbent = false, true, nil, nil
	x.round.waits = make(map[observed.Place]time.Duration)
	x.readClaims()
	var questions []*observed.Port
	for _, p := range x.host.Facts().Ends {
		if !x.IsRival(p) {
			continue
		}
		if may, why := x.MayCount(p); may {
			questions = append(questions, p)
		} else {
			x.alarm(p, why, true)
			x.askIncumbent(p)
		}
	}
	slices.SortStableFunc(questions, func(p, q *observed.Port) int {
		listed := func(q *observed.Port) int {
			if slices.Contains(x.config.Election.Trusted, q.GUID) {
				return 0
			}
			return 1
		}
		return listed(p) - listed(q)
	})
	if len(questions) > 0 && !x.IsMaster() {
		x.host.Emit(event.PhaseBegun{Phase: event.PhaseElect})
	}
	for _, p := range questions {
		x.round.pending++
		x.askMember(p)
	}
}

// askMember asks a manager that may count, in a round.
func (x *Peers) askMember(p *observed.Port) {
	at, guid, path := p.Place(), p.GUID, p.Path
	x.round.waits[at] = x.clock + x.waitFor(guid)
	x.askPeer(p, x.election.InfoFor(guid), func(info smp.SMInfo, err error) {
		r := Remote{Info: info, Address: Address{Path: path, Port: guid}}
		if err == nil && x.mayProve(at, r) {
			return
		}
		x.round.pending--
		delete(x.round.waits, at)
		delete(x.doubts, at)
		x.peerAnswered(at, r, err)
	})
}

// askPeer sends a Get of SMInfo that identifies this manager. It carries no M_Key, since
// a program on a host answers it.
func (x *Peers) askPeer(p *observed.Port, own smp.SMInfo, then func(smp.SMInfo, error)) {
	at, guid := p.Place(), p.GUID
	r := transact.Request{Path: p.Path, Method: mad.MethodGet, Attribute: smp.AttrSMInfo}
	if err := own.Encode(&r.Data); err != nil {
		x.host.Emit(event.Warned{Text: err.Error()})
	}
	x.talk.Do(r, func(reply transact.Reply) {
		var info smp.SMInfo
		err := reply.Err
		if err == nil {
			err = info.UnmarshalBinary(reply.SMP.Data[:])
		}
		x.hear(at, guid, info, err)
		then(info, err)
	})
}

// peerAnswered handles the answer of a manager that may count.
func (x *Peers) peerAnswered(at observed.Place, r Remote, err error) {
	p := x.host.Facts().Fabric.At(at)
	if p == nil || p.GUID != r.Address.Port {
		return // something else is there by now
	}
	switch {
	case err == nil && x.election.Counts(r):
		delete(x.silent, at)
		if x.rogues[at] != nil {
			delete(x.rogues, at)
			x.host.Emit(event.Warned{Text: facts.Where(p) + " has shown that it is a manager that counts"})
		}
		x.round.here = append(x.round.here, r)
		if x.election.Proves(r) {
			x.proved(p)
		}
	case err == nil:
		x.alarm(p, rogueUnproven, true)
	case !slices.Contains(x.config.Election.Trusted, p.GUID):
		x.saysNothing(p)
	case !x.silent[at]:
		x.silent[at] = true
		x.host.Emit(event.Warned{Text: p.String() + " says it has a subnet manager, but: " + err.Error()})
	}
	if err != nil || !x.election.Counts(r) {
		x.isIncumbent(p, r.Info, err)
	}
}

// askIncumbent asks a manager that is not named for its state, if this manager is new to
// the subnet. The request does not identify this manager.
func (x *Peers) askIncumbent(p *observed.Port) {
	if !x.newcomer || x.IsMaster() {
		return
	}
	at := p.Place()
	x.round.pending++
	x.round.waits[at] = x.clock + electionWait
	x.askPeer(p, smp.SMInfo{}, func(info smp.SMInfo, err error) {
		x.round.pending--
		delete(x.round.waits, at)
		if p := x.host.Facts().Fabric.At(at); p != nil {
			x.isIncumbent(p, info, err)
		}
	})
}

// isIncumbent records the port of the present master: by its SMInfo or, if it does not
// answer, by MasterSMLID of this manager's own port.
func (x *Peers) isIncumbent(p *observed.Port, info smp.SMInfo, err error) {
	self := x.host.Facts().Fabric.Self
	told := self.InfoRead && p.InfoRead && self.Info.MasterSMLID != ib.LIDReserved && self.Info.MasterSMLID == p.Info.LID
	if x.newcomer && !x.IsMaster() && (err == nil && info.SMState == smp.SMMaster || err != nil && told) {
		x.round.incumbent = p
	}
}

// Awaits reports whether an election waits for answers. A master does not wait: it
// goes on monitoring, and decides when the answers are there.
func (x *Peers) Awaits() bool {
	return x.Named() && !x.IsMaster() && x.clock < x.awaitedUntil()
}

// awaitedUntil is when an election waits for no answer any more.
func (x *Peers) awaitedUntil() (end time.Duration) {
	for _, at := range x.round.waits {
		end = max(end, at)
	}
	return end
}

// waitFor is how long an election waits for the answer of the manager at a port. A master that
// was given up has not answered when it was polled; its port says that there is a manager for as
// long as its process hangs. If it answers after all, the round takes that into account.
func (x *Peers) waitFor(guid ib.PortGUID) time.Duration {
	switch {
	case guid == x.gaveUp:
		return 0
	case x.StoodBy != "" && x.config.Election.MasterTimeout != 0 && !slices.Contains(x.config.Election.Trusted, guid):
		return min(x.config.Election.MasterTimeout, electionWait)
	}
	return electionWait
}

// Incumbent is the master, not one that counts, to which a manager that is new to the
// subnet leaves it; nil for none.
func (x *Peers) Incumbent() *observed.Port { return x.round.incumbent }

// Settle gives a manager that was new to the subnet its place among managers, and answers
// who asked meanwhile.
func (x *Peers) Settle(now time.Duration) {
	x.newcomer = false
	x.AnswerHeld(now)
}

// Master is the manager that says that it is master; 0 for none.
func (x *Peers) Master() (guid ib.PortGUID) {
	for _, r := range slices.Concat(x.round.here, x.others) {
		if r.Info.SMState == smp.SMMaster {
			guid = r.Info.GUID
		}
	}
	return guid
}

// Decide evaluates the last round. why is the verdict in words.
func (x *Peers) Decide(now time.Duration) (why string, master bool) {
	x.round.undecided = x.round.pending > 0
	x.rivals, x.round.partners = make(map[*observed.Port]smp.SMInfo, len(x.round.here)), 0
	for _, r := range x.round.here {
		if x.election.Proves(r) {
			x.round.partners++
		}
		if i := slices.IndexFunc(x.host.Facts().Ends, func(p *observed.Port) bool { return p.GUID == r.Info.GUID }); i >= 0 {
			r.Info.SMKey = 0 // what is told of it has no key
			x.rivals[x.host.Facts().Ends[i]] = r.Info
		}
	}
	verdict, effects := x.election.Decide(now, x.round.here)
	x.follow(effects)
	if x.IsMaster() {
		x.host.Shared(verdict != Master)
		if !x.round.undecided {
			x.host.Emit(event.Asked{Alone: verdict == Master})
		}
	}
	return verdict.String() + ", " + effects.Why, x.IsMaster()
}

// Advance evaluates a round that ended while this manager was master, and begins the
// next one.
func (x *Peers) Advance(now time.Duration) {
	x.clock = max(x.clock, now)
	if x.Named() && x.round.pending == 0 && x.IsMaster() {
		if x.round.undecided {
			x.Decide(now)
		}
		if x.round.again {
			x.Ask()
		}
	}
	x.askDoubts()
	x.judgeClaims()
	x.tellUnnamed()
	x.startCapLooks()
}

// Window is the window of these that a packet belongs to; nil for none.
func (x *Peers) Window(p *mad.SMP) *transact.Window {
	for _, w := range []*transact.Window{x.talk, x.polls} {
		if w.Owns(p) {
			return w
		}
	}
	return nil
}

// Next returns the window of the next request, whose packet is in p; nil when there is
// none.
func (x *Peers) Next(now time.Duration, p *mad.SMP) *transact.Window {
	for _, w := range []*transact.Window{x.polls, x.talk} {
		if w.Next(now, p) {
			return w
		}
	}
	return nil
}

// Windows are those of requests to other managers.
func (x *Peers) Windows() []*transact.Window { return []*transact.Window{x.talk, x.polls} }

// Expire tells the windows that time has passed.
func (x *Peers) Expire(now time.Duration) {
	x.talk.Expire(now)
	x.polls.Expire(now)
}

// Heard tells the time of a packet.
func (x *Peers) Heard(now time.Duration) { x.clock = max(x.clock, now) }

// Counts is what those requests have done that ask who is there.
func (x *Peers) Counts() transact.Counts { return x.talk.Counts() }
