package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/lab/replica"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// clientele is tenants and services, as a model of its own: who has business with
// whom is read from it, not from partitions.
type clientele struct {
	tenants  map[string][]ib.PortGUID
	limited  map[ib.PortGUID]bool // of the members of tenants
	services []offer
}

type offer struct {
	by []ib.PortGUID
	to []string
}

// randomClientele deals out hosts: a host has at most one tenant, and may offer
// services whether it has one or not.
func randomClientele(r *rand.Rand, hosts []ib.PortGUID) clientele {
	e := clientele{tenants: map[string][]ib.PortGUID{}, limited: map[ib.PortGUID]bool{}}
	names := []string{"red", "blue", "green"}[:2+r.IntN(2)]
	allFull := r.IntN(2) == 0
	for _, g := range hosts {
		if t := r.IntN(len(names) + 1); t < len(names) {
			e.tenants[names[t]] = append(e.tenants[names[t]], g)
			e.limited[g] = !allFull && r.IntN(4) == 0
		}
	}
	for range 1 + r.IntN(3) {
		var o offer
		for _, g := range hosts {
			if r.IntN(4) == 0 {
				o.by = append(o.by, g)
			}
		}
		for _, t := range names {
			if r.IntN(3) > 0 {
				o.to = append(o.to, t)
			}
		}
		if len(o.to) > 0 {
			e.services = append(e.services, o)
		}
	}
	return e
}

// policy says the clientele without a default partition, or in the guide's way, with
// one partition for each service.
func (e clientele) policy(t *testing.T, private bool) *policy.Policy {
	p := &policy.Policy{Default: policy.Limited, AbsentWarns: true}
	if private {
		p.Default = policy.None
	}
	for _, name := range []string{"red", "blue", "green"} {
		part := policy.Partition{Name: name, SL: 1} // so that virtual lanes are read, which a replica needs
		for _, g := range e.tenants[name] {
			as := policy.Full
			if e.limited[g] {
				as = policy.Limited
			}
			part.Members = append(part.Members, member(g, as))
		}
		p.Partitions = append(p.Partitions, part)
	}
	for i, o := range e.services {
		name := fmt.Sprint("service ", i)
		if !private {
			part := policy.Partition{Name: name}
			for _, tenant := range o.to {
				for _, g := range e.tenants[tenant] {
					if !slices.Contains(o.by, g) {
						part.Members = append(part.Members, member(g, policy.Limited))
					}
				}
			}
			for _, g := range o.by {
				part.Members = append(part.Members, member(g, policy.Full))
			}
			p.Partitions = append(p.Partitions, part)
			continue
		}
		s := policy.Service{Name: name, From: ib.PKeyBase(0x100 * (i + 1))}
		for _, g := range o.by {
			s.OfferedBy = append(s.OfferedBy, policy.Selector{Kind: policy.SelectPort, GUID: uint64(g)})
		}
		for _, tenant := range o.to {
			s.To = append(s.To, policy.Tenant{Name: tenant})
		}
		if err := p.AddService(s); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// business reports whether two ports are in one tenant, or one of them offers a
// service to the other's, or both offer it, or one is the manager and the other
// is in anything.
func (e clientele) business(a, b, self ib.PortGUID) bool {
	in := func(g ib.PortGUID, tenant string) bool { return slices.Contains(e.tenants[tenant], g) }
	anything := func(g ib.PortGUID) bool {
		for tenant := range e.tenants {
			if in(g, tenant) {
				return true
			}
		}
		return slices.ContainsFunc(e.services, func(o offer) bool { return slices.Contains(o.by, g) })
	}
	if a == self && anything(b) || b == self && anything(a) {
		return true
	}
	for tenant := range e.tenants {
		if in(a, tenant) && in(b, tenant) {
			return true
		}
	}
	for _, o := range e.services {
		for _, tenant := range o.to {
			mine := func(g ib.PortGUID) bool { return slices.Contains(o.by, g) || in(g, tenant) }
			if mine(a) && mine(b) {
				return true
			}
		}
	}
	return false
}

// forgeAll puts packets on the wire from every host to every other, with both
// forms of every key that any table holds, of the default partition, and of one
// that nobody has. It counts those that get to the adapter of a host that the
// sender has no business with: what that one's table says counts for nothing,
// for it may be in league with the sender. Those between hosts that have
// business have to get through where one does.
func forgeAll(t *testing.T, f *observed.Fabric, e clientele) (tried, foreign, own int, first string) {
	t.Helper()
	r, err := replica.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Gaps(); len(g) > 0 {
		t.Fatal(g[0])
	}
	bases := []ib.PKeyBase{ib.PKeyBaseDefault, 0x7001}
	for _, p := range f.EndPorts() {
		for _, k := range p.PKeys {
			if k.IsValid() && !slices.Contains(bases, k.Base()) {
				bases = append(bases, k.Base())
			}
		}
	}
	var body [mad.Size]byte
	var bytes []byte
	for _, a := range f.EndPorts() {
		for _, b := range f.EndPorts() {
			if a == b || a.Node.Switch != nil || b.Node.Switch != nil {
				continue
			}
			for _, base := range bases {
				for _, k := range []ib.PKey{base.Full(), base.Limited()} {
					m := packet.MADPacket{QP: ib.QP1, SLID: a.Info.LID, DLID: b.Info.LID, PKey: k, MAD: body[:]}
					if bytes, err = m.AppendBinary(bytes[:0]); err != nil {
						t.Fatal(err)
					}
					if err := r.Forge(a.Place(), b.Place(), bytes); err != nil {
						t.Fatal(err)
					}
					tried++
					if end := r.Ended(); end != replica.Delivered && end != replica.DestinationKey {
						continue
					}
					if e.business(a.GUID, b.GUID, f.Self.GUID) {
						own++
					} else if foreign++; foreign == 1 {
						first = fmt.Sprintf("%s to %s with %v", a, b, k)
					}
				}
			}
		}
	}
	return tried, foreign, own, first
}

// Whatever keys any set of hosts forges, without a default partition and with
// services no packet gets to the adapter of a host of another tenant; with the
// guide's shared partitions the same packets do. The proof says so of both: it
// leaves nothing to the hosts, and names the ports that tenants share, and no
// others.
func TestServicesAgainstForgedKeys(t *testing.T) {
	tried, foreign, shared, own := 0, 0, 0, 0
	first, soak := soakSeed(t)
	worlds := uint64(24)
	if soak {
		worlds = 2000
	}
	t.Logf("SOAK_SEED=%d", first)
	for i := range worlds {
		seed := first>>2 + i // topologies take seeds up to 2^63
		list := generate(t, fmt.Sprintf("random,seed=%d,switches=3,hosts=7", seed))
		e := randomClientele(rand.New(rand.NewPCG(seed, 31)), hosts(list))
		for _, private := range []bool{true, false} {
			w := bringUp(t, setup{list: list, policy: e.policy(t, private)})
			f := w.engine.Fabric()
			n, crossed, within, example := forgeAll(t, f, e)
			if !private {
				shared += crossed
				continue
			}
			tried, foreign, own = tried+n, foreign+crossed, own+within
			if crossed > 0 {
				t.Errorf("seed %d: %d packets get to another tenant's host, first %s", seed, crossed, example)
			}
			p := w.result().Proof
			if !e.someLimited() {
				var met []ib.PortGUID
				for _, m := range p.SharedPorts {
					met = append(met, m.EndPort)
				}
				if want := e.meeting(hosts(list), f.Self.GUID); !slices.Equal(met, want) {
					t.Errorf("seed %d: tenants are said to meet at %v, want %v", seed, met, want)
				}
			}
			if !e.someLimited() && len(p.Caveats) > 0 {
				t.Errorf("seed %d: left to the hosts: %q", seed, p.Caveats)
			}
		}
	}
	t.Logf("%d packets with forged keys: %d to hosts of others without a default partition, %d with one; %d to their own", tried, foreign, shared, own)
	if shared == 0 || own == 0 {
		t.Error("nothing gets through where it should: the harness does not try")
	}
}

// meeting are the ports that have business with two that have none with each
// other, in order.
func (e clientele) meeting(hosts []ib.PortGUID, self ib.PortGUID) (out []ib.PortGUID) {
	for _, m := range hosts {
		if slices.ContainsFunc(hosts, func(a ib.PortGUID) bool {
			return slices.ContainsFunc(hosts, func(b ib.PortGUID) bool {
				return a != b && a != m && b != m && e.business(m, a, self) && e.business(m, b, self) && !e.business(a, b, self)
			})
		}) {
			out = append(out, m)
		}
	}
	slices.Sort(out)
	return out
}

func (e clientele) someLimited() bool {
	for _, limited := range e.limited {
		if limited {
			return true
		}
	}
	return false
}
