package server

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed/group"
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

	until  time.Duration
	serial uint64 // in the order of registration
}

// Subscription is a wish to be told of events.
type Subscription struct {
	Port    ib.PortGUID
	Address mad.Address // where reports go
	Inform  sa.InformInfo
	// Trusted subscribers came with the SA_Key.
	Trusted bool
	Enum    uint16

	failures int    // reports without an answer, one after the other
	serial   uint64 // in the order of subscription
}

// store holds what hosts registered, besides multicast groups.
type store struct {
	services      []*Service // by serial
	named         map[serviceName]*Service
	offered       map[ib.PortGUID]int // services of a port
	subscriptions []*Subscription     // by serial
	subscribed    map[ib.PortGUID][]*Subscription
	aliases       map[ib.PortGUID][]ib.PortGUID
	owners        map[ib.PortGUID]ib.PortGUID // of alias GUIDs
	enum          uint16
	serial        uint64        // the last of services and subscriptions
	next          time.Duration // no lease ends before, 0 for none
}

// serviceName is what tells services apart.
type serviceName struct {
	id   uint64
	gid  ib.GID
	base ib.PKeyBase
}

func nameOf(r *sa.ServiceRecord) serviceName {
	return serviceName{r.ServiceID, r.ServiceGID, r.ServicePKey.Base()}
}

func newStore() store {
	return store{
		named: make(map[serviceName]*Service), offered: make(map[ib.PortGUID]int), subscribed: make(map[ib.PortGUID][]*Subscription),
		aliases: make(map[ib.PortGUID][]ib.PortGUID), owners: make(map[ib.PortGUID]ib.PortGUID),
	}
}

// service is the one that a record names, or nil.
func (s *store) service(r *sa.ServiceRecord) *Service { return s.named[nameOf(r)] }

// servicesFrom are the services after one, in order.
func (s *store) servicesFrom(serial uint64) []*Service {
	i, _ := slices.BinarySearchFunc(s.services, serial+1, func(x *Service, want uint64) int { return cmp.Compare(x.serial, want) })
	return s.services[i:]
}

// offer enters a service that is not there yet.
func (s *store) offer(x *Service) {
	s.serial++
	x.serial = s.serial
	s.services = append(s.services, x)
	s.named[nameOf(&x.Record)] = x
	s.offered[x.Port]++
}

func (s *store) withdraw(x *Service) {
	i, _ := slices.BinarySearchFunc(s.services, x.serial, func(x *Service, want uint64) int { return cmp.Compare(x.serial, want) })
	s.services = slices.Delete(s.services, i, i+1)
	s.forget(x)
}

// forget is what withdraw does besides the list.
func (s *store) forget(x *Service) {
	delete(s.named, nameOf(&x.Record))
	if s.offered[x.Port]--; s.offered[x.Port] == 0 {
		delete(s.offered, x.Port)
	}
}

// dropServices withdraws those for which of is true.
func (s *store) dropServices(of func(*Service) bool) {
	s.services = slices.DeleteFunc(s.services, func(x *Service) bool {
		gone := of(x)
		if gone {
			s.forget(x)
		}
		return gone
	})
}

// subscriptionsFrom are the subscriptions after one, in order.
func (s *store) subscriptionsFrom(serial uint64) []*Subscription {
	i, _ := slices.BinarySearchFunc(s.subscriptions, serial+1, func(x *Subscription, want uint64) int { return cmp.Compare(x.serial, want) })
	return s.subscriptions[i:]
}

// subscribe enters a subscription that is not there yet.
func (s *store) subscribe(x *Subscription) {
	s.serial++
	x.serial = s.serial
	s.subscriptions = append(s.subscriptions, x)
	s.subscribed[x.Port] = append(s.subscribed[x.Port], x)
}

// unsubscribe ends a subscription, if it has not ended.
func (s *store) unsubscribe(x *Subscription) {
	i, there := slices.BinarySearchFunc(s.subscriptions, x.serial, func(x *Subscription, want uint64) int { return cmp.Compare(x.serial, want) })
	if there {
		s.subscriptions = slices.Delete(s.subscriptions, i, i+1)
		s.unlist(x)
	}
}

// unlist is what unsubscribe does besides the list of all.
func (s *store) unlist(x *Subscription) {
	mine := slices.DeleteFunc(s.subscribed[x.Port], func(y *Subscription) bool { return x == y })
	if s.subscribed[x.Port] = mine; len(mine) == 0 {
		delete(s.subscribed, x.Port)
	}
}

// prune drops what belongs to ports that are gone or lost the partition. Reports to a port
// that has another LID now go there.
func (s *store) prune(v *View) (changed bool) {
	moved, before := false, len(s.services)+len(s.subscriptions)+len(s.aliases)
	s.dropServices(func(x *Service) bool {
		p := v.Owner(x.Port)
		base := x.Record.ServicePKey.Base()
		return p == nil || base != 0 && !p.Key(base).IsValid()
	})
	s.subscriptions = slices.DeleteFunc(s.subscriptions, func(x *Subscription) bool {
		p := v.Owner(x.Port)
		if p == nil {
			s.unlist(x)
			return true
		}
		if !p.Contains(x.Address.LID) {
			x.Address.LID = p.LID
			moved = true
		}
		return false
	})
	for port, list := range s.aliases {
		if v.Owner(port) == nil {
			for _, g := range list {
				delete(s.owners, g)
			}
			delete(s.aliases, port)
		}
	}
	return moved || len(s.services)+len(s.subscriptions)+len(s.aliases) != before
}

// expire drops the services whose lease has ended.
func (s *store) expire(now time.Duration) (changed bool) {
	if s.next == 0 || now < s.next {
		return false
	}
	before := len(s.services)
	s.dropServices(func(x *Service) bool { return x.ends() && now >= x.until })
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
		if fresh.service(&x.Record) != nil {
			return fmt.Errorf("service 0x%x of %s: it is there twice", x.Record.ServiceID, x.Record.ServiceGID)
		}
		fresh.offer(&x)
		fresh.keep(&x)
	}
	for i := range state.Subscriptions {
		x := state.Subscriptions[i]
		fresh.subscribe(&x)
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
