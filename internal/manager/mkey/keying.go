// Keying decides which M_Key each end port of a subnet ought to hold.
//
// In: the subnet as a sweep found it, and the key book: which port was given which key,
// and where. Out: the key that every end port ought to hold (Want), written by package
// apply, and the result, entered in the book (Took). A key belongs to a port at its
// location: a device with the GUIDs of another at a different location gets a
// separate entry, with a key that no other port ever had.

package mkey

import (
	"errors"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// KeyingConfig gives every end port an M_Key of its own.
type KeyingConfig struct {
	Keys
	// Keep says that the book is stored: no port is given a generation before a book with
	// it is stored.
	Keep bool
	// Shared says that other managers of the secret store which port has which key, before
	// they write it, where this one reads it (Keying.LockOut).
	Shared bool
}

// Shown are the keys that a discovery may show; nil for one that is the same
// everywhere.
func (c *KeyingConfig) Shown() sweep.Keys {
	if c == nil {
		return nil
	}
	return &c.Keys
}

// Keying is who ought to hold which key. The zero value gives none.
type Keying struct {
	Config *KeyingConfig // nil: none are given
	// Kept is the version of the book that is kept.
	Kept uint64
	// Due reports whether an entry is due for another key.
	Due bool
	// Unset counts the end ports that do not hold the key that they ought to.
	Unset int

	wanted *observed.Desired
	stands map[*observed.Port]*Entry
	// resting are the entries whose links have not come up since they were given
	// a key; refused those that could not be given one, and until when it is not
	// tried again.
	resting map[*Entry]*observed.Port
	refused map[*Entry]time.Duration
	full    bool
	// abandoned reports whether keys which were wanted were not written.
	abandoned bool
	lockout
}

// NewKeying gives keys by c, or none when it is nil.
func NewKeying(c *KeyingConfig) Keying {
	k := Keying{Config: c, resting: make(map[*Entry]*observed.Port), refused: make(map[*Entry]time.Duration)}
	if c != nil {
		k.Kept = c.Book.Version()
	}
	return k
}

// find returns the entry of an end port at its location, nil when there is none.
func (k *Keying) find(p *observed.Port) *Entry {
	return k.Config.Find(IDOf(p), PlaceOf(p.Via))
}

// Renew wants another key for the end ports of these GUIDs, or for all when there
// are none, and tells for how many.
func (k *Keying) Renew(ends []*observed.Port, guids []ib.PortGUID) (n int) {
	if k.Config == nil {
		return 0
	}
	chosen := make(map[ib.PortGUID]bool)
	for _, g := range guids {
		chosen[g] = true
	}
	for _, p := range ends {
		if len(guids) > 0 && !chosen[p.GUID] {
			continue
		}
		if s := k.find(p); s != nil {
			k.renew(s)
			n++
		}
	}
	return n
}

// Behind lists the keys to send to the other end of the cable of p, no key at all among
// them; old when ports have no keys of their own.
func (k *Keying) Behind(p *observed.Port, old ib.MKey) []ib.MKey {
	if k.Config == nil {
		return []ib.MKey{old}
	}
	return append(k.Config.Behind(p), 0)
}

func (k *Keying) renew(s *Entry) {
	k.Config.Book.Renew(s)
	k.Due = true
}

// Want works out who ought to hold which key, and gives the writes that this
// takes. The book has the generations that they need.
// An error is told once: some ports get no key.
func (k *Keying) Want(now time.Duration, f *observed.Fabric, ends []*observed.Port, guard desired.MKeyGuard) (p *plan.Plan, err error) {
	k.Due = false
	k.wanted, k.stands = observed.NewDesired(f), make(map[*observed.Port]*Entry)
	met := make(map[*observed.Node]bool)
	for _, p := range ends {
		s, e := k.entryOf(p, met)
		if e != nil && !k.full {
			k.full, err = true, e
		}
		if s == nil || now < k.refused[s] {
			continue
		}
		k.settle(p, s)
		guard.Give(k.wanted.Port(p), k.Config.Ring.MKey(s.ID, s.Wanted()))
		k.stands[p] = s
	}
	for n := range met {
		k.noteCables(f, n, met)
	}
	return plan.DiffMKeys(f, k.wanted), err
}

// Release is the plan by which ports give up the keys that they were given here.
func (k *Keying) Release(f *observed.Fabric, ends []*observed.Port) *plan.Plan {
	want := observed.NewDesired(f)
	for _, p := range ends {
		if p.Key != 0 {
			want.Port(p).Elements = observed.ElementMKey | observed.ElementMKeyProtectBits
		}
	}
	return plan.DiffMKeys(f, want)
}

// entryOf returns the entry of p at its location. A port that is new there is entered,
// and its node recorded in met, unless another device claims the same GUIDs.
func (k *Keying) entryOf(p *observed.Port, met map[*observed.Node]bool) (*Entry, error) {
	if s := k.find(p); s != nil || p.Node.Contested || !p.InfoRead {
		return s, nil
	}
	s, err := k.Config.Book.Add(IDOf(p), PlaceOf(p.Via))
	if err != nil {
		return nil, err
	}
	k.resting[s] = p
	met[p.Node] = true
	return s, nil
}

// noteCables enters the other cables of a node that is new, where both ends are new:
// no key is sent over a cable that appeared later and is on no list.
func (k *Keying) noteCables(f *observed.Fabric, n *observed.Node, met map[*observed.Node]bool) {
	for i := range n.Ports {
		p := &n.Ports[i]
		if p.Peer == nil || !met[p.Peer.Node] || p.Peer.Node.Switch == nil && p.Peer != f.Self {
			continue
		}
		if s := k.find(p.Agent()); s != nil {
			k.Config.Book.Cable(s, PlaceOf(p.Peer))
		}
	}
}

// settle records the generation that p was seen to have, and assigns another where one is
// due: on request, or because the link was down since p was given one, so that another
// device may be there.
func (k *Keying) settle(p *observed.Port, s *Entry) {
	book := k.Config.Book
	if g := k.Config.Generation(s, p.Key); g != 0 && p.Guarded() {
		book.Confirm(s, g)
	}
	if p.Node.Switch == nil {
		if p.Info.PortState > smp.PortInit {
			delete(k.resting, s)
		} else {
			if k.resting[s] == nil && s.Next == 0 {
				book.Renew(s)
			}
			k.resting[s] = p
		}
	}
	book.Begin(s)
}

// Took enters the outcome of the writes that Want gave. A port that refused, or did not answer, is
// not asked again for a while. It names the switches, and the manager's own port, that accept only
// a key that is not known here.
func (k *Keying) Took(until time.Duration, f *observed.Fabric, ends []*observed.Port, failures []apply.Failure) (locked []string) {
	failed := make(map[*observed.Port]bool)
	for _, x := range failures {
		failed[x.Port] = true
		foreign := errors.Is(x.Err, apply.ErrLocked)
		if s := k.stands[x.Port]; s != nil && (foreign || errors.Is(x.Err, transact.ErrNoAnswer)) {
			k.refused[s] = until
		}
		if !foreign { // slow, or gone
			continue
		}
		if x.Port.Node.Switch != nil || x.Port == f.Self {
			locked = append(locked, x.Port.String())
		}
	}
	k.Unset = 0
	for _, p := range ends {
		s := k.stands[p]
		if s == nil || failed[p] || !p.Guarded() || p.Key != k.wanted.Port(p).Info.MKey {
			k.Unset++
			continue
		}
		k.Config.Book.Confirm(s, s.Wanted())
		delete(k.refused, s)
	}
	for _, n := range f.Switches() {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil {
				p.Leads = sweep.Leads(k.Config.Shown(), p)
			}
		}
	}
	k.stands, k.wanted = nil, nil
	return locked
}

// Abandon leaves keys as they are. Took still finds which ports have the key that Want wanted.
func (k *Keying) Abandon() { k.Kept, k.abandoned = k.Config.Book.Version(), true }

// Keep says that the book is kept at this version: what was abandoned is due again.
func (k *Keying) Keep(version uint64) {
	k.Kept, k.Due, k.abandoned = version, k.Due || k.abandoned, false
}

// ComeUp notes which ports have come up under their keys: when the link of one
// goes down from now on, it gets another.
func (k *Keying) ComeUp() {
	for s, p := range k.resting {
		if p.InfoRead && p.Info.PortState > smp.PortInit {
			delete(k.resting, s)
		}
	}
}

// Lost reports whether an end port that had a key shows another, or none.
func (k *Keying) Lost(p *observed.Port) bool {
	return k.Config != nil && p.IsEnd() && p.Key != 0 && p.InfoRead && p.Info.MKey != p.Key
}

// Leaving renews the keys of end ports that lose a partition by a plan: earlier users of
// the port may have learned them.
func (k *Keying) Leaving(p *plan.Plan, tables *observed.Desired) {
	if k.Config == nil {
		return
	}
	for _, stage := range p.Stages {
		for _, op := range stage.Ops {
			if op.Attribute != smp.AttrPKeyTable || !op.Port.IsEnd() || op.Port.Node.Switch != nil {
				continue
			}
			if s := k.find(op.Port); s != nil && k.resting[s] == nil && losesPartition(op.Port.PKeys, tables.Port(op.Port).PKeys) {
				k.renew(s)
			}
		}
	}
}

// losesPartition reports whether a table held a partition, other than the default one,
// that another does not hold.
func losesPartition(before, after []ib.PKey) bool {
	for _, k := range before {
		if k.IsValid() && k.Base() != ib.PKeyBaseDefault && plan.Permitted(after, k) == ib.PKeyInvalid {
			return true
		}
	}
	return false
}

// GuardPorts are the switch ports, as read, that enforce partitions for an end port or an
// unknown device.
func GuardPorts(f *observed.Fabric) (out []*observed.Port) {
	for _, n := range f.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; p.InfoRead && (p.FacesEnd() || p.FacesStranger()) && p.Info.PartitionEnforcementInbound {
				out = append(out, p)
			}
		}
	}
	return out
}
