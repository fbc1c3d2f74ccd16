package simtest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// misbehave lets a rogue do something that its host can do.
func (g *rogue) misbehave(rnd *rand.Rand, r *rivals, at string, m *rival, managers []*rival) {
	var guids []ib.PortGUID
	for _, x := range managers {
		guids = append(guids, r.node(x.id(r)).Ports[1].GUID)
	}
	guids = append(guids, guidOf(r.list, at), 0)
	target := managers[rnd.IntN(len(managers))]
	g.info.GUID = guids[rnd.IntN(len(guids))]
	g.info.Priority, g.info.SMState = uint8(rnd.IntN(16)), smp.SMState(rnd.IntN(4))
	g.info.SMKey = ib.SMKey(rnd.Uint64() * uint64(rnd.IntN(2)))
	switch rnd.IntN(6) {
	case 0:
		m.port.SetIsSM(rnd.IntN(3) > 0)
	case 1:
		g.mute = !g.mute
	case 2:
		g.order(smp.SMControl(rnd.IntN(8)), r.info(target.at).LID)
	case 3:
		g.orderByRoute(r, smp.SMControl(rnd.IntN(8)), at, target.at)
	case 4: // what it heard, again
		if len(g.seen) > 0 {
			p := g.seen[rnd.IntN(len(g.seen))]
			p.Method, p.Direction, p.Status = mad.MethodSet, false, 0
			p.AttributeModifier, p.HopPointer = uint32(rnd.IntN(6)), 0
			g.out, g.dlid = append(g.out, p), append(g.dlid, r.info(target.at).LID)
		}
	case 5: // an answer that nobody asked for
		p := mad.SMP{
			BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID, Method: mad.MethodGetResp,
			TransactionID: rnd.Uint64(), AttributeID: smp.AttrSMInfo,
		}
		if g.info.Encode(&p.Data) == nil {
			g.out, g.dlid = append(g.out, p), append(g.dlid, r.info(target.at).LID)
		}
	}
}

// id is the name of the host where a manager is.
func (m *rival) id(r *rivals) string {
	for _, n := range r.list.Nodes {
		if n.GUID == m.at.node {
			return n.ID
		}
	}
	return ""
}

const (
	rogueSeeds     = 6
	rogueSeedsSoak = 400
	rogueActs      = 120
)

// Whatever a tenant's host does with SMInfo, in any order, the master of ours stays
// master and keeps the fabric as it is, and the standby stands by. Under managers
// that believe others the same acts unseat one of them.
func TestRogueAmongOurs(t *testing.T) {
	seeds, first := need.Share(rogueSeeds/3, rogueSeeds), uint64(1)
	if seed, soak := soakSeed(t); soak {
		seeds, first = rogueSeedsSoak, seed
	}
	unseated := 0
	for seed := first; seed < first+uint64(seeds); seed++ {
		for _, profile := range []protect.Profile{protect.None, protect.Tenant} {
			r := newRivals(t)
			r.list = topology.Demo()
			rnd := rand.New(rand.NewPCG(seed, 3))
			y := halves(hosts(r.list))
			c := engine.Config{Election: engine.Election{Priority: 9}, Profile: profile}
			if profile != protect.None {
				c.Election.SMKeys = ring(1)
			}
			master := r.joinAs("mgmt-1", c, y)
			r.run(time.Second)
			c.Election.Priority = 5
			standby := r.joinAs("blue-6", c, y)
			r.run(10 * time.Second)
			g := &rogue{}
			at := []string{"red-1", "red-3", "storage-2", "blue-2"}[rnd.IntN(4)]
			bad := r.seat(at, func(*rival) link.Engine { return g })
			ours := []*rival{master, standby}
			since := r.fabric.Now()
			for range rogueActs {
				g.misbehave(rnd, r, at, bad, ours)
				r.run(time.Duration(rnd.IntN(400)) * time.Millisecond)
			}
			moved := has[event.Deferred](master, since) || r.wrote(standby, since) > 0
			if profile == protect.None {
				if moved {
					unseated++
				}
				continue
			}
			if moved || has[event.Refused](master, since) {
				t.Errorf("seed %d: %v\nstandby: %v", seed, master.events, standby.events)
			}
			if got := g.learned(); got != "" && !g.pair(r, ours, at) {
				t.Errorf("seed %d: the rogue learned %s", seed, got)
			}
			r.checkMaster(master, y, 0)
		}
	}
	t.Logf("seeds %d to %d: %d times a manager that believes others was unseated", first, first+uint64(seeds)-1, unseated)
	if unseated == 0 {
		t.Error("nobody is unseated: these are no attacks")
	}
}

// pair reports whether all that a rogue was shown is what managers of ours show to
// its own port: that is of use at no other.
func (g *rogue) pair(r *rivals, ours []*rival, at string) bool {
	for i := range g.seen {
		var info smp.SMInfo
		if info.UnmarshalBinary(g.seen[i].Data[:]) != nil || g.seen[i].MKey != 0 {
			return false
		}
		fits := info.SMKey == 0
		for _, m := range ours {
			fits = fits || info.SMKey == ring(1)(r.node(m.id(r)).Ports[1].GUID, guidOf(r.list, at))
		}
		// Its own claims come back to it when it is asked to repeat them.
		if !fits && g.seen[i].Method == mad.MethodGet {
			return false
		}
	}
	return true
}

// However many hosts say that they have a manager, and say no more, a standby keeps
// hearing its master, and a manager that starts does not wait for them.
func TestManySilentManagers(t *testing.T) {
	need.Long(t, "a hundred managers")
	r := newRivalsOn(t, generate(t, "fattree,radix=14,levels=2"))
	y := halves(hosts(r.list))
	c := engine.Config{Election: engine.Election{Priority: 9, SMKeys: ring(1)}, Profile: protect.Tenant, Limits: transact.DefaultLimits()}
	c.Limits.MinTimeout = 200 * time.Millisecond
	master := r.joinAs("H0_0", c, y)
	r.run(5 * time.Second)
	c.Election.Priority = 5
	standby := r.joinAs("H3_1", c, y)
	r.run(10 * time.Second)
	var bad []*rival
	for _, n := range r.list.Nodes {
		if n.Type == ib.NodeCA && n.ID != "H0_0" && n.ID != "H3_1" && n.ID != "H2_2" {
			bad = append(bad, r.seat(n.ID, func(*rival) link.Engine { return &rogue{mute: true} }))
		}
	}
	since := r.fabric.Now()
	for _, m := range bad[:20] { // the standby sweeps, and asks, again and again
		g := m.engine.(*rogue)
		p := mad.SMP{
			BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID,
			Method: mad.MethodGet, TransactionID: 3, AttributeID: smp.AttrSMInfo,
		}
		g.out, g.dlid = append(g.out, p), append(g.dlid, r.info(standby.at).LID)
		r.run(time.Second)
	}
	if has[event.Deferred](master, since) || r.wrote(standby, since) > 0 {
		t.Errorf("%v\nstandby: %v", master.events, standby.events)
	}
	since = r.fabric.Now()
	r.leave(master)
	r.leave(standby)
	late := r.joinAs("H2_2", c, y)
	r.run(6 * time.Second)
	if !has[event.Completed](late, since) {
		t.Errorf("a manager that starts has no verdict in 6 s: %v", late.events)
	}
}
