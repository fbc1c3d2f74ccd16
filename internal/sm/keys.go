package sm

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/apply"
	"github.com/ibwarden/ibwarden/internal/cables"
	"github.com/ibwarden/ibwarden/internal/mkey"
	"github.com/ibwarden/ibwarden/internal/plan"
	"github.com/ibwarden/ibwarden/internal/subnet"
	"github.com/ibwarden/ibwarden/internal/sweep"
	"github.com/ibwarden/ibwarden/internal/transact"
)

// KeyConfig gives every end port an M_Key of its own.
type KeyConfig struct {
	mkey.Keys
	// Keep says that the owner of the engine keeps the book: no port is given a
	// generation before KeysKept has said that a book with it is kept.
	Keep bool
}

// Keyed tells that ports were given M_Keys.
type Keyed struct{ Ports, Failures int }

func (e Keyed) String() string {
	return fmt.Sprintf("M_Keys: %d ports were given one, %d were not", e.Ports-e.Failures, e.Failures)
}

// LockedError says which ports obey an M_Key that the manager does not know. A
// manager that may not write to switches, or to its own port, manages nothing.
type LockedError struct{ Ports []string }

// maxLockedNamed bounds the ports that a LockedError names.
const maxLockedNamed = 16

func (e *LockedError) Error() string {
	named := strings.Join(e.Ports[:min(len(e.Ports), maxLockedNamed)], ", ")
	if more := len(e.Ports) - maxLockedNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("guarded by M_Keys that this manager does not have: %s (give it the data directory or the keys of the manager that was here before; a power cycle clears the keys of a device)", named)
}

// keying is what an engine knows of M_Keys.
type keying struct {
	config *KeyConfig // nil: Config.MKey, if any, is everybody's
	kept   uint64     // version of the book
	// wanted is what end ports ought to hold, given which stands the run under
	// way is for.
	wanted *subnet.Desired
	stands map[*subnet.Port]*mkey.Stand
	// resting are the stands whose links have not come up since they were given
	// a key; refused those that could not be given one, and until when it is not
	// tried again.
	resting map[*mkey.Stand]*subnet.Port
	refused map[*mkey.Stand]time.Duration
	due     bool // Renew was called for a stand
	unset   int  // ports without the key that they ought to have
	told    bool
	full    bool
}

func (e *Engine) openKeys() {
	c := &e.config
	k := keying{config: c.Keys, resting: make(map[*mkey.Stand]*subnet.Port), refused: make(map[*mkey.Stand]time.Duration)}
	if c.Keys != nil {
		k.kept = c.Keys.Book.Version()
		c.Keys.Declared = e.declaredAt
	}
	e.keys = k
}

// declaredAt is who belongs behind a place by the list of cables.
func (e *Engine) declaredAt(at mkey.Place) (id mkey.ID, ok bool) {
	list := e.cabling.list
	peer, ok := list.Peer(cables.End(at))
	if !ok {
		return id, false
	}
	if d, _ := list.Device(peer.Node); d.Type == ib.NodeSwitch {
		peer.Port = 0
	}
	return mkey.ID{Node: peer.Node, Port: list.PortGUID(peer)}, true
}

// shown are the keys that a discovery may show; nil for one that is the same
// everywhere.
func (c *KeyConfig) shown() sweep.Keys {
	if c == nil {
		return nil
	}
	return &c.Keys
}

// givesKeys reports whether the engine writes M_Keys of its own accord.
func (e *Engine) givesKeys() bool { return e.keys.config != nil && !e.config.Hold }

// Keys is the book of generations; nil when ports get no keys of their own. It
// changes while the engine runs, and its owner keeps it when its Version is
// another.
func (e *Engine) Keys() *mkey.Book {
	if e.keys.config == nil {
		return nil
	}
	return e.keys.config.Book
}

// KeysKept tells that the book is kept as it was at this version.
func (e *Engine) KeysKept(version uint64) { e.keys.kept = version }

// KeysNotKept tells that the book could not be kept: the ports that wait for it
// go without another key until the next look at the whole subnet.
func (e *Engine) KeysNotKept(err error) {
	if e.state == stateKeying && e.awaitsKeeping() {
		e.emit(Warned{fmt.Sprintf("M_Keys stay as they are: what is needed to find them again could not be kept: %v", err)})
		e.run.Stop()
		e.keys.stands = nil
		e.keys.kept = e.Keys().Version()
	}
}

// awaitsKeeping reports whether keys wait to be given until their generations
// are kept.
func (e *Engine) awaitsKeeping() bool {
	return e.run.Pending() && e.keys.config.Keep && e.keys.kept != e.Keys().Version()
}

// RenewKeys wants another key for the end ports of these GUIDs, or for all when
// there are none, and tells for how many. They get it when the engine is at rest.
func (e *Engine) RenewKeys(guids ...ib.PortGUID) (n int) {
	if !e.givesKeys() {
		return 0
	}
	chosen := make(map[ib.PortGUID]bool)
	for _, g := range guids {
		chosen[g] = true
	}
	for _, p := range e.ends {
		if len(guids) > 0 && !chosen[p.GUID] {
			continue
		}
		if s := e.keys.config.Find(mkey.IDOf(p), mkey.PlaceOf(p.Via)); s != nil {
			e.renew(s)
			n++
		}
	}
	return n
}

func (e *Engine) renew(s *mkey.Stand) {
	e.Keys().Renew(s)
	e.keys.due = true
}

// rekeys reports whether keys are to be changed and nothing else is under way.
func (e *Engine) rekeys() bool {
	return e.keys.due && e.state == stateWatching && e.desired != nil && e.isMaster()
}

// proceed goes on as the master of a subnet that was found: keys come before its
// tables are read, and before anything else is written.
func (e *Engine) proceed(now time.Duration) {
	if e.discovery == nil {
		e.pursue(now)
		return
	}
	e.secure(now)
}

// secure starts to give every end port the key that it ought to have.
func (e *Engine) secure(now time.Duration) {
	e.keys.due = false
	e.wantKeys(now)
	e.state, e.stage = stateKeying, ""
	e.run = apply.Start(e.window, plan.DiffMKeys(e.fabric, e.keys.wanted), e.config.Limits.Window)
}

// keepOn goes on giving keys; false while their generations are not kept yet.
func (e *Engine) keepOn(now time.Duration) bool {
	if e.awaitsKeeping() {
		return false
	}
	if e.run.Advance() {
		e.secured(now)
	} else {
		e.enterStage()
	}
	return true
}

// enterStage tells of the stage that the run under way has come to.
func (e *Engine) enterStage() {
	if s := e.run.Stage(); s != e.stage && !e.multicast.alone {
		e.stage = s
		e.begin(s)
	}
}

// wantKeys works out who ought to hold which key. A port gets one where it
// stands, once: who comes with the GUIDs of another, at another place, gets one
// that nobody else has, and is shown none.
func (e *Engine) wantKeys(now time.Duration) {
	k := &e.keys
	k.wanted, k.stands = subnet.NewDesired(e.fabric), make(map[*subnet.Port]*mkey.Stand)
	met := make(map[*subnet.Node]bool)
	for _, p := range e.ends {
		s := e.standOf(p, met)
		if s == nil || now < k.refused[s] {
			continue
		}
		e.settleStand(p, s)
		want := k.wanted.Port(p)
		want.Elements = subnet.ElementMKey | subnet.ElementMKeyProtectBits | subnet.ElementMKeyLeasePeriod
		want.Info.MKey = k.config.Ring.MKey(s.ID, s.Wanted())
		want.Info.MKeyProtectBits = e.config.Profile.MKeyProtectBits()
		k.stands[p] = s
	}
	for n := range met {
		e.noteCables(n, met)
	}
}

// standOf is where p stands. One that was never met there is entered, and noted
// in met, unless another device claims to be the same.
func (e *Engine) standOf(p *subnet.Port, met map[*subnet.Node]bool) *mkey.Stand {
	book, id, at := e.Keys(), mkey.IDOf(p), mkey.PlaceOf(p.Via)
	if s := e.keys.config.Find(id, at); s != nil || p.Node.Contested || !p.InfoRead {
		return s
	}
	s, err := book.Meet(id, at)
	if err != nil {
		if !e.keys.full {
			e.emit(Warned{err.Error()})
		}
		e.keys.full = true
		return nil
	}
	e.keys.resting[s] = p
	met[p.Node] = true
	return s
}

// noteCables enters the other cables that lead to a node that was met for the
// first time, where both ends are new: nobody is shown a key over a cable that
// came later, and that no list names.
func (e *Engine) noteCables(n *subnet.Node, met map[*subnet.Node]bool) {
	for i := range n.Ports {
		p := &n.Ports[i]
		if p.Peer == nil || !met[p.Peer.Node] || p.Peer.Node.Switch == nil && p.Peer != e.fabric.Self {
			continue
		}
		a := p.Agent()
		if s := e.keys.config.Find(mkey.IDOf(a), mkey.PlaceOf(a.Via)); s != nil {
			e.Keys().Cable(s, mkey.PlaceOf(p.Peer))
		}
	}
}

// settleStand notes the generation that p was seen to have, and means another
// where one is due: asked for, or because the link was down since p was given
// one, so that somebody else may be there.
func (e *Engine) settleStand(p *subnet.Port, s *mkey.Stand) {
	k := &e.keys
	if g := k.config.Generation(s, p.Key); g != 0 && p.Guarded() {
		e.Keys().Confirm(s, g)
	}
	if p.Node.Switch == nil {
		if p.Info.PortState > smp.PortInit {
			delete(k.resting, s)
		} else {
			if k.resting[s] == nil && s.Next == 0 {
				e.Keys().Renew(s)
			}
			k.resting[s] = p
		}
	}
	e.Keys().Begin(s)
}

// secured takes over what became of the keys.
func (e *Engine) secured(now time.Duration) {
	k := &e.keys
	failed := make(map[*subnet.Port]bool)
	var locked []string
	for _, f := range e.run.Failures() {
		e.emit(Failed{f})
		failed[f.Port] = true
		if errors.Is(f.Err, apply.ErrLocked) {
			if s := k.stands[f.Port]; s != nil {
				k.refused[s] = now + e.config.DriftPeriod
			}
			if f.Port.Node.Switch != nil || f.Port == e.fabric.Self {
				locked = append(locked, f.Port.String())
			}
		}
	}
	k.unset = 0
	for _, p := range e.ends {
		s, want := k.stands[p], k.wanted.Port(p)
		switch {
		case s != nil && !failed[p] && p.Guarded() && p.Key == want.Info.MKey:
			e.Keys().Confirm(s, s.Wanted())
			delete(k.refused, s)
		default:
			k.unset++
		}
	}
	for _, n := range e.fabric.Switches() {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil {
				p.Leads = sweep.Leads(k.config.shown(), p)
			}
		}
	}
	if writes := e.run.Writes(); writes > 0 {
		e.emit(Keyed{Ports: writes, Failures: len(e.run.Failures())})
	}
	e.run, k.stands = nil, nil
	switch {
	case !e.isMaster():
		e.rest(now, stateStandby)
	case len(locked) > 0 && !e.settled:
		e.refuse(now, &LockedError{locked})
	case e.discovery == nil:
		e.state = stateWatching
	default:
		e.readRest()
	}
}

// readRest reads the tables, under the keys that stand now, and again what was
// read of the guards before there were any.
func (e *Engine) readRest() {
	e.state = stateReading
	for _, n := range e.fabric.Switches() {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.IsEnd() && p.InfoRead && (p.FacesEnd() || p.FacesStranger()) && p.Info.PartitionEnforcementInbound {
				e.reread(p, smp.AttrPortInfo, uint32(p.Num), nil)
			}
		}
	}
}

// rested takes over the tables.
func (e *Engine) rested(now time.Duration) {
	faults := e.discovery.Faults()
	for _, f := range faults[min(e.faults, len(faults)):] {
		e.emit(Met{f})
	}
	e.faults = len(faults)
	e.discovery = nil
	if !e.isMaster() {
		e.rest(now, stateStandby)
		return
	}
	e.pursue(now)
}

// comeUp notes which ports have come up under their keys: when the link of one
// goes down from now on, it gets another.
func (e *Engine) comeUp() {
	for s, p := range e.keys.resting {
		if p.InfoRead && p.Info.PortState > smp.PortInit {
			delete(e.keys.resting, s)
		}
	}
}

// lostKey reports whether an end port holds another key than it ought to.
func (e *Engine) lostKey(p *subnet.Port) bool {
	return e.keys.config != nil && p.IsEnd() && p.Key != 0 && p.InfoRead && p.Info.MKey != p.Key
}

// leaving renews the keys of end ports that lose a partition by a plan: whoever
// was there before may have learned them.
func (e *Engine) leaving(p *plan.Plan) {
	if !e.givesKeys() {
		return
	}
	for _, stage := range p.Stages {
		for _, op := range stage.Ops {
			if op.Attribute != smp.AttrPKeyTable || !op.Port.IsEnd() || op.Port.Node.Switch != nil {
				continue
			}
			s := e.keys.config.Find(mkey.IDOf(op.Port), mkey.PlaceOf(op.Port.Via))
			if s != nil && e.keys.resting[s] == nil && loses(op.Port.PKeys, e.desired.tables.Port(op.Port).PKeys) {
				e.renew(s)
			}
		}
	}
}

// loses reports whether a table held a partition, other than the default one,
// that another does not hold.
func loses(before, after []ib.PKey) bool {
	for _, k := range before {
		if k.IsValid() && k.Base() != ib.PKeyBaseDefault && plan.Permitted(after, k) == ib.PKeyInvalid {
			return true
		}
	}
	return false
}

// askBehind asks who is at the other end of a cable, with every key that may be
// shown there.
func (e *Engine) askBehind(p *subnet.Port, path mad.Path, then func(transact.Reply)) {
	keys := []ib.MKey{e.config.MKey}
	if k := e.keys.config.shown(); k != nil {
		keys = append(k.Behind(p), 0)
	}
	for _, key := range keys {
		e.window.Do(transact.Request{
			Path: path, Respond: subnet.RespTimeAssumed.Duration(), MKey: key,
			Method: mad.MethodGet, Attribute: smp.AttrNodeInfo,
		}, then)
	}
}
