package master

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// Engine is a subnet manager and the administration of its subnet as one
// engine: the former's packets leave first.
type Engine struct {
	manager *engine.Engine
	admin   *server.Server
	tell    func(event.Event)
	// changed reports whether the subnet is another than the administration knows,
	// notices what devices reported since. Both wait until the manager has
	// done its step: events must not call back.
	now     time.Duration
	changed bool
	// led reports whether multicast packets go otherwise than before; given is the
	// version of the groups that the manager was told of last, none before the
	// first time.
	led   bool
	given uint64
	gave  bool
	// leaves reports whether multicast tables stay as they are.
	leaves  bool
	notices []event.Trapped
	claimed uint64 // version of the manager's claims that the administration knows
	keeper  keeper
	keys    keyKeeper
	share   sharing
	reader  *perfmgr.Poller // of counters; nil for none
}

// keeper keeps what hosts registered, before they are told that it is
// registered.
type keeper struct {
	save func(server.State) error // nil: it is not kept
	kept uint64                   // the version that is
	next time.Duration            // not sooner than this
	bad  bool                     // the last attempt failed
}

// Saving takes at most a tenth of the time, and waits no longer for more than it
// has to: many hosts register at once.
const (
	leastBetweenSaves = 20 * time.Millisecond
	restAfterSave     = 9 // times as long as it took
)

// New returns a manager with this configuration, and the administration of its subnet,
// which has the manager's profile. observe sees every event as it happens and must not
// call back.
func New(c engine.Config, a server.Config, p *policy.Policy, observe func(event.Event)) *Engine {
	a.Profile = c.Profile
	m := &Engine{
		admin: server.New(a), leaves: c.LeaveMulticast,
		tell: observe,
	}
	m.manager = engine.New(c, p, func(e event.Event) {
		m.observe(e)
		observe(e)
	})
	return m
}

func (m *Engine) warn(text string) { m.tell(event.Warned{Text: text}) }

// Manager is the subnet manager.
func (m *Engine) Manager() *engine.Engine { return m.manager }

// Settled reports whether the manager has nothing to do until time passes or
// something arrives, and knows of every group.
func (m *Engine) Settled() bool { return m.manager.Settled() && !m.outdated() }

// Administration answers hosts.
func (m *Engine) Administration() *server.Server { return m.admin }

// Registered is what hosts have registered.
func (m *Engine) Registered() server.State { return m.admin.State(m.now) }

// Keep restores what hosts registered, and from now on hands save every state
// that is to be kept before anybody is told of it. It is called before the first
// packet, and of an administration whose Config says Keep.
func (m *Engine) Keep(state server.State, save func(server.State) error) error {
	if err := m.admin.Restore(0, state); err != nil {
		return err
	}
	m.keeper = keeper{save: save, kept: m.admin.Version()}
	m.admin.Kept(m.keeper.kept)
	return nil
}

// Recall enters what the master before this one assigned and what hosts registered with it.
// It is called after event.TakingOver, before the engine is driven on: no host is asked to
// register again then.
func (m *Engine) Recall(a desired.Assigned, state server.State) error {
	if err := m.restore(state); err != nil {
		return err
	}
	m.manager.Remember(a, true)
	if !m.leaves { // before the first pass, which would else take every group for one that has ended
		m.groups()
	}
	return nil
}

// Resume enters what hosts registered with another master while this one was stopped, instead of
// what they registered here before, which is in it. false: hosts were told here since of what is
// in no store, and neither list has all.
func (m *Engine) Resume(state server.State) (whole bool, err error) {
	if m.share.lost {
		return false, nil
	}
	return true, m.restore(state)
}

func (m *Engine) restore(state server.State) error {
	if err := m.admin.Restore(m.now, state); err != nil {
		return err
	}
	m.keeper.kept = m.admin.Version()
	m.admin.Kept(m.keeper.kept)
	return nil
}

// Flush saves what changed last, at the end.
func (m *Engine) Flush() {
	m.keeper.next = 0
	m.keep(m.now)
}

// keep saves the state when it has changed, and releases the answers that waited for
// that. A failure to save does not keep hosts from the network: they are answered, and
// the failure is reported.
func (m *Engine) keep(now time.Duration) {
	k := &m.keeper
	m.shareLate(now)
	version := m.admin.Version()
	if k.save == nil || version == k.kept || now < k.next {
		return
	}
	began := time.Now()
	err := k.save(m.admin.State(now))
	k.kept, k.next = version, now+max(leastBetweenSaves, restAfterSave*time.Since(began))
	m.kept(now, version)
	if err != nil && !k.bad {
		m.warn(fmt.Sprintf("what hosts register is not kept: %v", err))
	}
	k.bad = err != nil
}

var _ link.Long = (*Engine)(nil)

// observe notes what an event of the manager means for the administration.
func (m *Engine) observe(e event.Event) {
	switch e := e.(type) {
	case event.Completed, event.Deferred:
		m.changed = true
	case event.PhaseBegun:
		m.changed = m.changed || e.Phase == event.PhaseAnnounce
	case event.PolicyGiven:
		m.changed = m.changed || m.manager != nil && m.manager.Serves()
	case event.Regrouped:
		m.led = true
	case event.Trapped:
		m.notices = append(m.notices, e)
	}
}

// follow passes the manager's results to subnet administration.
func (m *Engine) follow(now time.Duration) {
	m.keepKeys(now)
	if m.changed {
		m.changed, m.led = false, true
		if snapshot, ok := m.manager.Subnet(); ok {
			if !m.leaves {
				m.admin.Groups().Withhold(m.manager.UnknownMLIDs())
			}
			for _, err := range m.admin.SetSubnet(now, snapshot) {
				m.warn(err.Error())
			}
			m.readSubnet(&snapshot)
		} else {
			m.admin.Suspend()
			m.readSubnet(nil)
		}
	}
	m.admin.SetChanging(now, !m.manager.Settled())
	if claims, version := m.manager.Claims(); version != m.claimed {
		m.claimed = version
		m.setClaims(claims)
	}
	for _, n := range m.notices {
		m.admin.Notice(now, n.Notice, n.Sender)
	}
	m.notices = m.notices[:0]
	if m.led && m.manager.Settled() {
		m.led = false
		m.release()
	}
	m.handOver()
}

// setClaims passes the ports that hold LIDs which are not theirs to subnet
// administration.
func (m *Engine) setClaims(claims []desired.LIDClaim) {
	by := make(map[ib.LID][]*observed.Port)
	for _, c := range claims {
		by[c.LID] = append(by[c.LID], c.By)
	}
	m.admin.SetClaims(by)
}

// release frees the multicast LIDs of groups that ended, once no table leads
// their packets anywhere.
func (m *Engine) release() {
	var free []ib.LID
	for _, r := range m.admin.Groups().Retired() {
		if !m.manager.Leads(r.MLID) {
			free = append(free, r.MLID)
		}
	}
	m.admin.Groups().Release(free)
}

// outdated reports whether the manager should be told of the groups: what
// changes while it writes is told when it is done.
func (m *Engine) outdated() bool {
	if !m.gave {
		return !m.leaves
	}
	return m.admin.Groups().Version() != m.given && m.manager.Settled()
}

// handOver tells the manager of the groups.
func (m *Engine) handOver() {
	if !m.outdated() {
		return
	}
	m.groups()
}

func (m *Engine) groups() {
	m.gave, m.given = true, m.admin.Groups().Version()
	m.manager.SetGroups(m.admin.Groups().State().Groups)
}

func (m *Engine) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) { return m.manager.Next(now, p) }

func (m *Engine) LastWait(p *mad.SMP) time.Duration { return m.manager.LastWait(p) }

func (m *Engine) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	m.manager.Receive(now, p, slid)
	m.follow(now)
}

func (m *Engine) Lost(now time.Duration, p *mad.SMP) {
	m.manager.Lost(now, p)
	m.follow(now)
}

func (m *Engine) Expire(now time.Duration) {
	m.now = now
	m.manager.Expire(now)
	m.follow(now)
	m.admin.Expire(now)
	if m.reader != nil {
		m.reader.Expire(now)
	}
	m.keep(now)
}

func (m *Engine) Deadline() (time.Duration, bool) {
	if m.outdated() {
		return 0, true
	}
	due, ok := m.manager.Deadline()
	if at, some := m.admin.Deadline(); some && (!ok || at < due) {
		due, ok = at, true
	}
	if at, some := m.readingDue(); some && (!ok || at < due) {
		due, ok = at, true
	}
	if at, some := m.shareDue(); some && (!ok || at < due) {
		due, ok = at, true
	}
	if k := &m.keeper; k.save != nil && m.admin.Version() != k.kept && (!ok || k.next < due) {
		due, ok = k.next, true
	}
	return due, ok
}

func (m *Engine) NextGeneral(now time.Duration, bytes *[mad.Size]byte) (mad.Address, bool) {
	m.keep(now)
	to, ok := m.admin.Next(now, bytes)
	m.handOver()
	if !ok {
		to, ok = m.nextReading(now, bytes)
	}
	return to, ok
}

func (m *Engine) ReceiveGeneral(now time.Duration, bytes *[mad.Size]byte, from mad.Address) {
	if m.reader != nil && mad.Class(bytes[offClass]) == mad.ClassPerfMgt {
		began := time.Now()
		m.reader.Receive(now, bytes, from)
		m.reader.Spent(now, time.Since(began))
		return
	}
	m.admin.Receive(now, bytes, from)
}

func (m *Engine) LostGeneral(now time.Duration, bytes *[mad.Size]byte) {
	if m.reader != nil && mad.Class(bytes[offClass]) == mad.ClassPerfMgt {
		m.reader.Lost(now, bytes)
		return
	}
	m.admin.Lost(now, bytes)
}

func (m *Engine) NextLong(time.Duration) (mad.Address, rmpp.Message, bool) {
	return m.admin.NextLong()
}

func (m *Engine) ReceiveLong(now time.Duration, whole *rmpp.Message, from mad.Address) {
	m.admin.ReceiveLong(now, whole, from)
}

func (m *Engine) LostLong(now time.Duration, to mad.Address) { m.admin.LostLong(now, to) }
