package certificate_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

// tenant is who has some of the hosts, and may know some of the partitions that these are in.
type tenant struct {
	*world
	view certificate.View
	r    *rand.Rand
}

func (w *world) tenant(seed uint64) *tenant {
	x := &tenant{w, certificate.View{Owns: map[ib.PortGUID]bool{}, Sees: map[ib.PKeyBase]bool{}}, rand.New(rand.NewPCG(seed, 7))}
	hosts := w.hosts()
	for i, p := range hosts {
		if i == int(seed)%len(hosts) || x.r.IntN(4) == 0 {
			x.view.Owns[p.GUID] = true
			for _, k := range subnettest.PKeys(w.allowed, p.GUID) {
				x.view.Sees[k.Base()] = x.r.IntN(8) > 0 // the others are those of a token that is bound to some
			}
		}
	}
	return x
}

func (x *tenant) owns(p *observed.Port) bool { return x.view.Owns[p.GUID] }

func (x *tenant) certificate() []byte {
	return certificate.Write(certificate.Input{Fabric: x.Fabric, Allowed: x.allowed, RawAllowed: x.rawMay, Cables: x.declares, ReadAt: readAt, Revision: 3, View: &x.view})
}

// confirmFor is confirm for what a tenant is told: of others it holds of some port.
func (x *trial) confirmFor(who *tenant, line string, proof *isolation.Proof) bool {
	ends := x.Fabric.EndPorts()
	real := func(text string) []*observed.Port {
		if i := slices.IndexFunc(ends, func(p *observed.Port) bool { return p.GUID.String() == text }); i >= 0 && who.owns(ends[i]) {
			return ends[i : i+1]
		}
		return slices.DeleteFunc(slices.Clone(ends), who.owns)
	}
	keys := func(text string) (list []string) {
		n, _ := strconv.ParseUint(text, 0, 16)
		if k := ib.PKey(n); who.view.Sees[k.Base()] {
			return []string{text}
		}
		list = append(list, text) // of a host's own table
		for i := range len(x.allowed) + 1 {
			list = append(list, ib.PKeyBase(0x10+i).Limited().String(), ib.PKeyBase(0x10+i).Full().String())
		}
		return list
	}
	try := func(line string) bool { return x.confirm(line, proof) }
	if m := crossing.FindStringSubmatch(line); m != nil {
		for _, a := range real(m[1]) {
			for _, b := range real(m[2]) {
				if a == b || a.Node.Switch != nil || !who.owns(a) && !who.owns(b) { // a switch sends nothing
					continue
				}
				if m[4] != "" && try(fmt.Sprintf("no: %s (a) can send to %s (b) raw packets: ", a.GUID, b.GUID)) {
					return true
				}
				if m[4] == "" && who.owns(a) != who.owns(b) && who.open(a, b) {
					return true // that others have some partition is assumed
				}
				for _, k := range keys(m[3]) {
					if m[4] == "" && try(fmt.Sprintf("no: %s (a) can send to %s (b) with P_Key %s: ", a.GUID, b.GUID, k)) {
						return true
					}
				}
			}
		}
		return false
	}
	if m := differs.FindStringSubmatch(line); m != nil {
		for _, a := range real(m[3]) {
			for _, k := range keys(m[5]) {
				text := fmt.Sprintf("no: the P_Key table of %s (a) %s %s, which its class has", a.GUID, m[4], k)
				if m[1] != "" && a.Peer != nil {
					text = fmt.Sprintf("no: the P_Key table of port %s %03d (s), which holds %s (a) %s %s, which its class has", a.Peer.Node.GUID(), a.Peer.Num, a.GUID, m[4], k)
				}
				if (m[1] == "" || a.Peer != nil) && try(text) {
					return true
				}
			}
		}
		return false
	}
	for _, n := range x.Fabric.Switches() {
		if rest, is := strings.CutPrefix(line, "no: switch "); is && try("no: switch "+n.GUID().String()+rest[len(n.GUID().String()):]) {
			return true
		}
	}
	return false
}

// open reports whether, of two ports, nothing checks what the first sends and is the tenant's, or what the
// second gets and is.
func (x *tenant) open(a, b *observed.Port) bool {
	checks := func(p *observed.Port, can, on bool) bool {
		return !p.Peer.IsEnd() && p.Peer.Node.Switch.Info.PartitionEnforcementCap > 0 && can && on
	}
	return x.owns(a) && !checks(a, a.Peer.Node.Switch.Info.InboundEnforcementCap, a.Peer.Info.PartitionEnforcementInbound) ||
		x.owns(b) && !checks(b, b.Peer.Node.Switch.Info.OutboundEnforcementCap, b.Peer.Info.PartitionEnforcementOutbound)
}

// TestTenants: what a tenant is told of random fabrics, of which half have a fault. No yes is
// false, every no has a witness that holds of his ports and of some port of others, and all is
// well for him where it is for all.
func TestTenants(t *testing.T) {
	rounds := need.Rounds(need.Share[uint64](60, 600), 10_000)
	first, c := need.Seed(t, 1), build(t)
	statuses, better := map[int]int{}, 0
	for seed := first; seed < first+rounds; seed++ {
		w, what := newWorld(seed), fault{what: "none", do: func() {}}
		if seed%2 == 1 {
			what = w.fault()
		}
		var x *trial
		if what.lost {
			x = w.trial(t, seed)
			what.do()
		} else {
			what.do()
			x = w.trial(t, seed)
		}
		who := w.tenant(seed)
		status, out := c.check(who.certificate())
		whole, _ := c.check(w.certificate())
		proof, crossed := w.judged(), x.crosses(who.owns)
		fail := func(why string) {
			t.Fatalf("seed %d, fault %s at %v: %s: status %d, of all %d\n%s%s", seed, what.what, what.at, why, status, whole, out, who.certificate())
		}
		statuses[status]++
		if status == 0 && whole != 0 {
			better++
		}
		switch {
		case status == 0 && crossed != "":
			fail("a false yes, " + crossed)
		case status != 1 && crossed != "" && !what.lost:
			fail("packets cross, " + crossed)
		case status == 2 && !what.lost:
			fail("everything was read")
		case status == 0 && what.lost && what.what != "a host's table":
			fail("something was not read") // the table of another's host is no matter
		case whole == 0 && status != 0 && !slices.ContainsFunc(w.hosts(), func(p *observed.Port) bool { return who.owns(p) && who.open(p, p) }):
			fail("no fault is his")
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "no: ") && !what.lost && !x.confirmFor(who, line, proof) {
				fail("this does not hold: " + line)
			}
		}
	}
	t.Logf("%d fabrics, by status %v; in %d all is well for the tenant and not for others", rounds, statuses, better)
	if statuses[0] == 0 || statuses[1] == 0 || statuses[2] == 0 || better == 0 {
		t.Error("want some of each")
	}
}

// strangers makes all that is not a tenant's another: who they are, how many, in which
// partitions, and where.
func (x *tenant) strangers() {
	reach := map[ib.PKeyBase]bool{} // what is in the tenant's tables by the policy or by a switch
	for _, p := range x.hosts() {
		if x.owns(p) {
			for _, k := range subnettest.PKeys(x.allowed, p.GUID) {
				reach[k.Base()] = true
			}
			if p.Peer != nil && !p.Peer.IsEnd() {
				for _, k := range p.Peer.PKeys {
					reach[k.Base()] = true
				}
			}
		}
	}
	keys, guids := map[ib.PKeyBase]ib.PKeyBase{0: 0}, map[ib.PortGUID]ib.PortGUID{}
	taken := map[ib.PKeyBase]bool{}
	key := func(k ib.PKey) ib.PKey {
		base, known := keys[k.Base()]
		if !known {
			if base = k.Base(); !reach[base] || !x.view.Sees[base] {
				base = ib.PKeyBase(0x1000 + x.r.IntN(0x6000))
			}
			for ; taken[base]; base++ { // two that become one would be another fabric
			}
			keys[k.Base()], taken[base] = base, true
		}
		if k.IsFull() {
			return base.Full()
		}
		return base.Limited()
	}
	for _, n := range x.Fabric.Nodes {
		own := slices.ContainsFunc(x.Fabric.EndPorts(), func(p *observed.Port) bool { return p.Node == n && x.owns(p) })
		for i := range n.Ports {
			p := &n.Ports[i]
			for j, k := range p.PKeys {
				if !x.owns(p) || reach[k.Base()] {
					p.PKeys[j] = key(k)
				}
				if p.Peer != nil && !p.IsEnd() && p.Peer.IsEnd() && !x.owns(p.Peer) && k != 0 && x.r.IntN(2) == 0 {
					p.PKeys[j] ^= 0x8000 // membership counts for nothing there
				}
			}
			if p.GUID != 0 && !x.owns(p) {
				guids[p.GUID] = ib.PortGUID(x.r.Uint64())
				p.GUID = guids[p.GUID]
			}
		}
		if !own {
			n.Info.NodeGUID, n.Description = ib.NodeGUID(x.r.Uint64()), fmt.Sprint("other ", x.r.IntN(1e6))
		}
	}
	for i := range x.allowed {
		a := &x.allowed[i]
		if !x.view.Sees[a.Base] || !reach[a.Base] {
			a.Name = fmt.Sprint("other ", i)
		}
		a.Base = key(a.Base.Full()).Base()
		for _, list := range []*[]ib.PortGUID{&a.Full, &a.Limited} {
			*list = slices.Clone(*list)
			for j, g := range *list {
				if other, changed := guids[g]; changed {
					(*list)[j] = other
				}
			}
		}
	}
	x.more()
	x.r.Shuffle(len(x.allowed), func(i, j int) { x.allowed[i], x.allowed[j] = x.allowed[j], x.allowed[i] })
}

// more adds a partition of a host at a switch of its own, and more hosts that are like others.
func (x *tenant) more() {
	guid := func(n *observed.Node) {
		n.Info.NodeGUID = ib.NodeGUID(x.r.Uint64())
		n.Ports[len(n.Ports)-1].GUID = ib.PortGUID(x.r.Uint64())
	}
	var like []*observed.Port
	for _, p := range x.hosts() {
		if !x.owns(p) && p.Reached && p.Peer != nil && !p.Node.Contested && len(p.Node.Ports) == 2 {
			like = append(like, p)
		}
	}
	for range x.r.IntN(4) {
		if len(like) == 0 {
			return
		}
		old := like[x.r.IntN(len(like))]
		s, n := x.Switch(3, "more"), x.Node(old.Node.Type(), 1, "more")
		from := old.Peer.Node
		s.Info.NodeGUID, s.Switch.Info, s.Switch.InfoRead = ib.NodeGUID(x.r.Uint64()), from.Switch.Info, from.Switch.InfoRead
		alike := func(p, q *observed.Port) {
			p.Info, p.InfoRead, p.PKeys, p.PKeysRead = q.Info, q.InfoRead, slices.Clone(q.PKeys), slices.Clone(q.PKeysRead)
		}
		guid(n)
		p := &n.Ports[1]
		subnettest.Cable(p, &s.Ports[1])
		alike(p, old)
		alike(p.Peer, old.Peer)
		alike(&s.Ports[0], &from.Ports[0])
		s.Ports[0].GUID = ib.PortGUID(x.r.Uint64())
		x.unlisted[p], x.unlisted[p.Peer] = x.unlisted[old], x.unlisted[old.Peer]
		for _, q := range []*observed.Port{p, &s.Ports[0]} {
			if q.Info.MKey > 1 {
				q.Info.MKey = 0x7711223344000000 + ib.MKey(x.r.IntN(1<<24))
			}
		}
		for i := range x.allowed {
			a := &x.allowed[i]
			for _, list := range []*[]ib.PortGUID{&a.Full, &a.Limited} {
				if slices.Contains(*list, old.GUID) {
					*list = append(*list, p.GUID)
				}
				if slices.Contains(*list, from.Ports[0].GUID) {
					*list = append(*list, s.Ports[0].GUID)
				}
			}
		}
	}
}

// TestTenantsAreBlind: two fabrics that differ in who the others are, how many, under which names
// and numbers, and where, give a tenant the same bytes.
func TestTenantsAreBlind(t *testing.T) {
	rounds, first := need.Rounds(need.Share[uint64](400, 2000), 50_000), need.Seed(t, 1)
	grown := 0
	for seed := first; seed < first+rounds; seed++ {
		w := newWorld(seed)
		what := fault{what: "none"}
		if seed%2 == 1 {
			if what = w.fault(); what.what != "a shared M_Key" { // with how many others, the guards say
				what.do()
			}
		}
		x := w.tenant(seed)
		before, ends := x.certificate(), len(w.Fabric.EndPorts())
		whole := w.certificate()
		x.strangers()
		if len(w.Fabric.EndPorts()) > ends {
			grown++
		}
		if after := x.certificate(); !bytes.Equal(before, after) {
			t.Fatalf("seed %d, fault %s at %v:\n%s\nand of other strangers\n%s", seed, what.what, what.at, before, after)
		}
		if bytes.Equal(whole, w.certificate()) {
			t.Fatalf("seed %d: nothing is another", seed)
		}
	}
	if grown == 0 {
		t.Error("there were never more")
	}
}
