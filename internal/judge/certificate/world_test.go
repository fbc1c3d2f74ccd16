package certificate_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// readAt is when the fabrics of these tests were read: now, since certificates expire.
var readAt = time.Now().UTC().Truncate(time.Second)

// world is a random fabric that is set up as its policy says, with every guard on.
type world struct {
	*subnettest.Builder
	r        *rand.Rand
	allowed  []observed.Partition
	rawMay   bool // the policy allows raw packets
	unlisted map[*observed.Port]bool
}

const tableSize = 32 // entries of a P_Key table

func newWorld(seed uint64) *world {
	w := &world{Builder: subnettest.New(), r: rand.New(rand.NewPCG(seed, 31)), unlisted: map[*observed.Port]bool{}}
	w.SwitchInfo.FilterRawInboundCap, w.SwitchInfo.FilterRawOutboundCap = true, true
	w.PortInfo = smp.PortInfo{VLCap: 1, OperationalVLs: 1, MTUCap: ib.MTU4096, NeighborMTU: ib.MTU256}
	switches, hosts := 1+w.r.IntN(3), 2+w.r.IntN(6)
	for i := range switches {
		w.Switch(2*hosts+2*switches+3, fmt.Sprintf("s%d", i))
	}
	w.RandomTree(w.r.IntN)
	for i := range hosts {
		n := w.Node([]ib.NodeType{ib.NodeCA, ib.NodeCA, ib.NodeCA, ib.NodeCA, ib.NodeRouter}[w.r.IntN(5)], 1+w.r.IntN(6)/5, fmt.Sprintf("h %d", i))
		for num := 1; num < len(n.Ports); num++ {
			subnettest.Cable(&n.Ports[num], subnettest.Free(w.Fabric.Nodes[w.r.IntN(switches)]))
		}
	}
	w.rawMay = w.r.IntN(8) == 0
	w.guard()
	w.policy()
	w.fill()
	w.Route()
	w.ManagedFrom(w.hosts()[0])
	return w
}

// hosts are the end ports of CAs and routers, by GUID.
func (w *world) hosts() []*observed.Port {
	return slices.DeleteFunc(w.Fabric.EndPorts(), func(p *observed.Port) bool { return p.Node.Switch != nil })
}

// guard sets M_Keys and filters.
func (w *world) guard() {
	for i, p := range w.Fabric.EndPorts() {
		p.Info.MKey, p.Info.MKeyProtectBits = ib.MKey(0x1122334455667700+uint64(i)), uint8(1+w.r.IntN(2))
	}
	for _, p := range w.hosts() {
		p.Peer.Info.FilterRawInbound, p.Peer.Info.FilterRawOutbound = !w.rawMay, !w.rawMay
	}
}

// policy makes tenants, services of which tenants are limited members, each tenant in a
// partition of its own or, in some, all in one, and the manager's partition.
func (w *world) policy() {
	base := ib.PKeyBase(0x10)
	add := func(full, limited []ib.PortGUID) {
		w.allowed = append(w.allowed, observed.Partition{Name: fmt.Sprintf("p %d", len(w.allowed)), Base: base, Full: full, Limited: limited})
		base++
	}
	hosts, tenants := w.hosts(), 1+w.r.IntN(3)
	groups := make([][]ib.PortGUID, tenants+1) // the last is nobody's, or a service
	for _, p := range hosts {
		g := w.r.IntN(len(groups))
		groups[g] = append(groups[g], p.GUID)
	}
	for _, g := range groups[:tenants] {
		add(g, nil)
		if w.r.IntN(2) == 0 {
			add(groups[tenants], g)
		}
	}
	if w.r.IntN(10) == 0 { // limited members of one partition are not kept apart
		add(groups[tenants], slices.Concat(groups[:tenants]...))
	}
	if w.r.IntN(4) == 0 {
		add(nil, []ib.PortGUID{w.Fabric.Nodes[0].Ports[0].GUID}) // port 0 of a switch
	}
	if w.r.IntN(12) == 0 {
		add(subnettest.GUIDs(w.Fabric.EndPorts()...), nil)
	}
}

// fill gives every port the tables of the policy.
func (w *world) fill() {
	for _, p := range w.Fabric.EndPorts() {
		keys := subnettest.PKeys(w.allowed, p.GUID)
		subnettest.SetPKeys(p, keys...)
		if p.Node.Switch == nil {
			for i, k := range keys {
				if w.r.IntN(2) == 0 {
					keys[i] = k.Base().Full() // no matter which at a switch port
				}
			}
			subnettest.SetPKeys(p.Peer, keys...)
		}
	}
}

func (w *world) raw() isolation.Raw {
	if w.rawMay {
		return isolation.RawAllowed
	}
	return isolation.RawDenied
}

func (w *world) declares(p *observed.Port) bool { return !w.unlisted[p] }

func (w *world) certificate() []byte {
	return certificate.Write(certificate.Input{Fabric: w.Fabric, Allowed: w.allowed, RawAllowed: w.rawMay, Cables: w.declares, ReadAt: readAt, Revision: 7})
}

// may reports whether the policy lets two end ports talk.
func (w *world) may(a, b ib.PortGUID) bool {
	for _, x := range w.allowed {
		in := func(g ib.PortGUID) bool { return slices.Contains(x.Full, g) || slices.Contains(x.Limited, g) }
		if in(a) && in(b) && (slices.Contains(x.Full, a) || slices.Contains(x.Full, b)) {
			return true
		}
	}
	return false
}
