package saserver

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/group"
	"github.com/ibwarden/ibwarden/internal/saserver/view"
)

// State is what outlives a server.
type State struct {
	Groups        group.State
	Services      []Service
	Subscriptions []Subscription
	// Aliases are the alias GUIDs of ports by index from 1, zero where there
	// is none.
	Aliases map[ib.PortGUID][]ib.PortGUID
}

// Service is a registered service.
type Service struct {
	Record sa.ServiceRecord // ServiceLease as it was asked for
	Port   ib.PortGUID
	// Left is what is left of the lease when the state was taken; meaningless
	// for a lease without end.
	Left time.Duration

	until time.Duration
}

// Subscription is a wish to be told of events.
type Subscription struct {
	Port    ib.PortGUID
	Address mad.Address // where reports go
	Inform  sa.InformInfo
	// Trusted subscribers came with the SA_Key.
	Trusted bool
	Enum    uint16

	failures int // reports without an answer, one after the other
}

// store holds what hosts registered, besides multicast groups.
type store struct {
	services      []*Service // in the order of their registration
	subscriptions []*Subscription
	aliases       map[ib.PortGUID][]ib.PortGUID
	owners        map[ib.PortGUID]ib.PortGUID // of alias GUIDs
	enum          uint16
	next          time.Duration // no lease ends before, 0 for none
}

func newStore() store {
	return store{aliases: make(map[ib.PortGUID][]ib.PortGUID), owners: make(map[ib.PortGUID]ib.PortGUID)}
}

// prune drops what belongs to ports that are gone or lost the partition.
func (s *store) prune(v *view.View) (changed bool) {
	before := len(s.services) + len(s.subscriptions) + len(s.aliases)
	s.services = slices.DeleteFunc(s.services, func(x *Service) bool {
		p := v.Owner(x.Port)
		base := x.Record.ServicePKey.Base()
		return p == nil || base != 0 && !p.Key(base).IsValid()
	})
	s.subscriptions = slices.DeleteFunc(s.subscriptions, func(x *Subscription) bool {
		p := v.Owner(x.Port)
		return p == nil || !p.Contains(x.Address.LID)
	})
	for port, list := range s.aliases {
		if v.Owner(port) == nil {
			for _, g := range list {
				delete(s.owners, g)
			}
			delete(s.aliases, port)
		}
	}
	return len(s.services)+len(s.subscriptions)+len(s.aliases) != before
}

// expire drops the services whose lease has ended.
func (s *store) expire(now time.Duration) (changed bool) {
	if s.next == 0 || now < s.next {
		return false
	}
	before := len(s.services)
	s.services = slices.DeleteFunc(s.services, func(x *Service) bool { return x.ends() && now >= x.until })
	s.next = 0
	for _, x := range s.services {
		if x.ends() && (s.next == 0 || x.until < s.next) {
			s.next = x.until
		}
	}
	return len(s.services) != before
}

func (s *store) deadline() (time.Duration, bool) { return s.next, s.next != 0 }

// ends reports whether the lease has an end.
func (x *Service) ends() bool { return x.Record.ServiceLease != sa.ServiceLeaseForever }

// keep enters when a service ends.
func (s *store) keep(x *Service) {
	if x.ends() && (s.next == 0 || x.until < s.next) {
		s.next = x.until
	}
}

// Version changes whenever State does, the time that is left of leases aside.
func (s *Server) Version() uint64 { return s.version + s.groups.Version() }

// State is a copy of what is to be kept.
func (s *Server) State(now time.Duration) State {
	out := State{Groups: s.groups.State(), Aliases: make(map[ib.PortGUID][]ib.PortGUID, len(s.store.aliases))}
	for _, x := range s.store.services {
		c := *x
		c.Left, c.until = max(x.until-now, 0), 0
		out.Services = append(out.Services, c)
	}
	for _, x := range s.store.subscriptions {
		c := *x
		c.failures = 0
		out.Subscriptions = append(out.Subscriptions, c)
	}
	for port, list := range s.store.aliases {
		out.Aliases[port] = slices.Clone(list)
	}
	return out
}

// Restore enters what State gave, before the first SetSubnet, which drops what
// does not fit the subnet any more. A state that contradicts itself is refused
// as a whole.
func (s *Server) Restore(now time.Duration, state State) error {
	fresh := newStore()
	for i := range state.Services {
		x := state.Services[i]
		x.until = now + x.Left
		fresh.services = append(fresh.services, &x)
		fresh.keep(&x)
	}
	for i := range state.Subscriptions {
		x := state.Subscriptions[i]
		fresh.subscriptions = append(fresh.subscriptions, &x)
		fresh.enum = max(fresh.enum, x.Enum)
	}
	for port, list := range state.Aliases {
		for _, g := range list {
			if owner, twice := fresh.owners[g]; twice {
				return fmt.Errorf("alias GUID %s: of port %s and of port %s", g, min(owner, port), max(owner, port))
			}
			if g != 0 {
				fresh.owners[g] = port
			}
		}
		fresh.aliases[port] = slices.Clone(list)
	}
	if err := s.groups.Restore(state.Groups); err != nil {
		return err
	}
	s.store = fresh
	s.version++
	return nil
}

// count is the number of elements for which of is true.
func count[T any](list []T, of func(T) bool) (n int) {
	for _, x := range list {
		if of(x) {
			n++
		}
	}
	return n
}

// compareSubscriptions orders by port and number.
func compareSubscriptions(a, b *Subscription) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Enum, b.Enum))
}
