package simtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/test/need"
)

// shelf is a store in memory, and what a daemon does with one that managers share.
type shelf struct {
	t       testing.TB
	objects files.Objects
	full    bool // it takes nothing
	due     map[*seat]bool
	gave    int // how often there was something new
}

// serve has a manager write to it when it is master.
func (s *shelf) serve(m *seat) {
	if s == nil {
		return
	}
	if err := m.engine.Keep(server.State{}, func(server.State) error { return nil }); err != nil {
		s.t.Fatal(err)
	}
	m.engine.KeepKeys(func(*mkey.Book) error { return nil })
	m.engine.Share(func() bool {
		leads := m.engine.Manager().Status().State == smp.SMMaster
		s.due[m] = s.due[m] || leads
		return leads
	})
}

// turn writes what is new, between turns of an engine; a standby takes the keys.
func (s *shelf) turn(m *seat) {
	if s == nil {
		return
	}
	e := m.engine.Manager()
	if e.Status().State != smp.SMMaster {
		if all, some, err := s.objects.All(0, time.Now()); err != nil {
			s.t.Fatal(err)
		} else if some {
			merge(s.t, e.Keys(), &all)
		}
		return
	}
	if !s.due[m] || s.full {
		return
	}
	s.due[m] = false
	s.gave++
	book, err := json.Marshal(e.Keys())
	if err != nil {
		s.t.Fatal(err)
	}
	all := files.All{Assigned: e.Assigned(), Registered: files.Registered{State: m.engine.Registered(), Manager: e.Fabric().Self.GUID}, Book: book, Secret: "sum"}
	registered, keys := m.engine.Versions()
	list, err := s.objects.Changes(&all, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.objects.Enter(list)
	m.engine.Stored(registered, keys)
}

// merge enters the keys of the store in a book.
func merge(t testing.TB, book *mkey.Book, all *files.All) {
	t.Helper()
	var b mkey.Book
	if err := json.Unmarshal(all.Book, &b); err != nil {
		t.Fatal(err)
	}
	if err := book.Merge(&b); err != nil {
		t.Fatal(err)
	}
}

// recall is what a standby finds when it takes over.
func (s *shelf) recall(m *seat) {
	all, some, err := s.objects.All(0, time.Now())
	if err != nil || !some {
		s.t.Fatal(some, err)
	}
	if err := m.engine.Recall(all.Assigned, all.Registered.State); err != nil {
		s.t.Fatal(err)
	}
}

// does makes a request of subnet administration again and again until it is answered, and
// returns how long that took.
func (c *client) does(method mad.Method, mask sa.ComponentMask, r sa.Record) (status mad.Status, took time.Duration) {
	c.t.Helper()
	b, err := r.AppendBinary(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.tid++
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: method, TransactionID: c.tid, AttributeID: r.ID(),
	}, ComponentMask: mask}
	copy(m.Data[:], b)
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	since, answered := c.fabric.Now(), false
	next := since
	c.until("an answer", time.Minute, func() bool {
		c.gsi.Receive(func(_ *endpoint.Completion, got *[mad.Size]byte) {
			var head mad.Header
			if head.UnmarshalBinary(got[:]) == nil && head.TransactionID == c.tid {
				answered, status = true, head.Status
			}
		})
		if now := c.fabric.Now(); now >= next && !answered {
			next = now + 100*time.Millisecond
			c.fabric.At(next, func() {})
			to := c.fabric.Agent(c.place.node).Port(c.place.num).MasterSMLID
			_ = c.gsi.Send((*[mad.Size]byte)(bytes), endpoint.SendRequest{RemoteQP: ib.QP1, To: endpoint.Address{DLID: to}}) // refused is lost
		}
		return answered
	})
	return status, c.fabric.Now() - since
}

// TestStandbyFromTheShelf: what hosts registered with a master, and the generation of each
// M_Key, are in the store before anybody hears of them. Its standby has them from there when
// the master is killed: it reads a guarded fabric with a book that it never wrote, answers as
// the master did, and asks nobody to register again. Without an answer of the store a host
// waits a second, and no port gets another M_Key.
func TestStandbyFromTheShelf(t *testing.T) {
	need.Long(t, "a failover of a pair that keeps all it knows in a store")
	list := generate(t, "demo")
	x := newPair(t, list)
	x.shelf = &shelf{t: t, due: map[*seat]bool{}}
	y := tenantsOf(hosts(list))
	secret := mkey.NewRing([mkey.SecretSize]byte{9})
	config := func(i int, priority uint8, book *mkey.Book) engine.Config {
		c := engine.Config{Election: engine.Election{Priority: priority}, LearnCables: true}
		var s server.Config
		master.Guard{Profile: protect.Tenant, Keys: master.KeysOf(secret, book, true), Learn: true}.Configure(&c, &s)
		c.Keys.Self = mkey.ID{Node: x.hostNodes()[i].GUID, Port: x.hostNodes()[i].Ports[1].GUID}
		return c
	}
	first := x.sit(0, config(0, 5, new(mkey.Book)), x.managed(y, 0, 4))
	x.until("the first proof", time.Minute, func() bool { return first.proved(0) })
	all, _, err := x.shelf.objects.All(0, time.Now()) // as it starts
	if err != nil {
		t.Fatal(err)
	}
	book := new(mkey.Book)
	merge(t, book, &all)
	c := config(4, 0, book)
	c.Cables = first.engine.Manager().Cables()
	second := x.sit(4, c, x.managed(y, 0, 4))
	x.run(30 * time.Second)
	if len(secondFaults(second)) > 0 {
		t.Fatalf("the standby could not read the fabric: %v", secondFaults(second))
	}
	host := x.client(2, 2+len(y.tenants))
	service := &sa.ServiceRecord{ServiceID: 7, ServiceGID: host.self, ServicePKey: 0xFFFF, ServiceLease: 3600}
	const names = sa.ServiceRecordServiceID | sa.ServiceRecordServiceGID | sa.ServiceRecordServicePKey
	if status, took := host.does(mad.MethodSet, names|sa.ServiceRecordServiceLease, service); status != mad.StatusOK || took > time.Second/2 {
		t.Fatalf("a service is registered: %s after %v", status, took)
	}
	inform := &sa.InformInfo{LIDRangeBegin: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: 0xFFFF, TrapNumber: 64, Producer: 0xFFFFFF, RespTimeValue: 19}
	if status, _ := host.does(mad.MethodSet, 0, inform); status != mad.StatusOK {
		t.Fatalf("a subscription: %s", status)
	}
	if x.shelf.gave == 0 {
		t.Fatal("nothing was written")
	}

	x.forget()
	x.kill(first)
	since := x.fabric.Now()
	x.until("it takes over", time.Minute, func() bool {
		if second.over {
			second.over = false
			x.shelf.recall(second)
			return true
		}
		return false
	})
	if status, took := host.does(mad.MethodGet, names, service); status != mad.StatusOK || took > time.Second {
		t.Errorf("the service is asked for after the takeover: %s after %v", status, took)
	}
	x.until("a proof", time.Minute, func() bool { return second.proved(since) })
	if x.reregister > 0 || x.downs > 0 {
		t.Errorf("%d hosts are asked to register again, %d links taken down", x.reregister, x.downs)
	}
	if got := second.engine.Registered(); len(got.Services) != 1 || len(got.Subscriptions) != 1 {
		t.Errorf("%d services and %d subscriptions", len(got.Services), len(got.Subscriptions))
	}
	for _, e := range second.engine.Manager().Keys().Entries() {
		if e.Current != 1 {
			t.Errorf("port %s has generation %d by the standby's book, want 1", e.ID.Port, e.Current)
		}
	}

	// The store does not answer any more.
	x.shelf.full = true
	service.ServiceID = 8
	if status, took := host.does(mad.MethodSet, names|sa.ServiceRecordServiceLease, service); status != mad.StatusOK || took < time.Second || took > 3*time.Second/2 {
		t.Errorf("without the store a service is registered: %s after %v, want a second", status, took)
	}
	service.ServiceID = 9
	if status, took := host.does(mad.MethodSet, names|sa.ServiceRecordServiceLease, service); status != mad.StatusOK || took > time.Second/2 {
		t.Errorf("once it is lost: %s after %v", status, took)
	}
	x.forget()
	if second.engine.Manager().RenewKeys() == 0 {
		t.Fatal("no port is to get a new key")
	}
	x.run(20 * time.Second)
	if n := x.sets[smp.AttrPortInfo]; n > 0 {
		t.Errorf("%d ports were written while their new keys were not stored", n)
	}
	x.shelf.full = false
	x.run(40 * time.Second)
	for _, e := range second.engine.Manager().Keys().Entries() {
		if e.Current < 2 {
			t.Errorf("port %s has generation %d when the store answers again", e.ID.Port, e.Current)
		}
	}
}

// secondFaults are the places that a manager could not read.
func secondFaults(m *seat) (out []string) {
	for _, h := range m.events {
		if f, is := h.Event.(event.SweepFault); is {
			out = append(out, f.String())
		}
	}
	return out
}
