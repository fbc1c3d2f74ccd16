package fabric_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// PI-113: from the arrival of an SMP at a port to its answer's departure no more time
// passes than RespTimeValue says there, whatever time agents would take.
func TestResponseTime(t *testing.T) {
	const slow = 100 * time.Microsecond
	for value := range ib.TimeValue(8) {
		var came, went time.Duration
		c := fabric.Config{Seed: 1, HopDelay: 300, AgentDelay: slow, Jitter: slow}
		c.Profile = func(n *topology.Node, d *sma.Config) {
			for i := range d.Ports {
				d.Ports[i].RespTimeValue = 20
			}
			if d.Switch != nil {
				d.Switch.Port0.RespTimeValue = value
			} else if n.GUID == hostGUID(2) {
				d.Ports[0].RespTimeValue = value
			}
		}
		c.Trace = func(s fabric.Sighting) {
			if answer := mad.Method(s.MAD[3]).IsResponse(); s.What == fabric.SeenLeaving && (s.Node == hostGUID(2)) == answer {
				came, went = map[bool]time.Duration{true: came, false: s.At + c.HopDelay}[answer], s.At
			}
		}
		b := newBench(t, star(t), c)
		longest := ib.TimeValue(value).Duration()
		for range 50 {
			b.manage(hostGUID(1), 1, func(c *client) {
				var info smp.PortInfo
				c.must(byLID(mad.MethodGet, smp.AttrPortInfo, 0), 3, &info)
				if took := went - came; took > longest || took < min(slow, longest) || info.RespTimeValue != value {
					t.Errorf("RespTimeValue %d: answered after %v, want at most %v", info.RespTimeValue, took, longest)
				}
			})
		}
	}
}

// PI-65: traps and answers to the master, and what a manager behind the port sends
// there, are on MasterSMSL; what goes to others is not.
func TestMasterSMSL(t *testing.T) {
	const level = ib.SL(5)
	for _, keeps := range []bool{false, true} {
		seen := map[mad.Method]ib.SL{}
		c := fabric.DefaultConfig()
		c.Profile = func(_ *topology.Node, d *sma.Config) { d.TrapSends, d.AnswersKeepSL = 1, keeps }
		c.Trace = func(s fabric.Sighting) {
			if s.What == fabric.SeenLeaving && s.Node == hostGUID(2) {
				seen[mad.Method(s.MAD[3])] = s.SL
			}
		}
		b := newBench(t, star(t), c)
		master := ib.LID(2) // host 1
		b.change(hostGUID(2), 1, func(p *smp.PortInfo) { p.MasterSMLID, p.MasterSMSL = master, level })
		want := func(what string, m mad.Method, sl ib.SL) {
			t.Helper()
			if got, ok := seen[m]; !ok || got != sl {
				t.Errorf("answers keep the level %v: %s left on SL %d (%v), want %d", keeps, what, got, ok, sl)
			}
			delete(seen, m)
		}
		answers, manager := level, level
		if keeps {
			answers, manager = 0, 0
		}
		get := func(from ib.NodeGUID, lid ib.LID) {
			b.manage(from, 1, func(c *client) {
				var info smp.NodeInfo
				c.must(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), lid, &info)
			})
		}
		get(hostGUID(1), 3)
		want("an answer to the master", mad.MethodGetResp, answers)
		get(hostGUID(3), 3)
		want("an answer to another", mad.MethodGetResp, 0)
		get(hostGUID(2), master)
		want("a request to the master", mad.MethodGet, manager)
		get(hostGUID(2), 4)
		want("a request to another", mad.MethodGet, 0)
		b.must(b.SetDescription(hostGUID(2), "renamed"))
		b.idle()
		want("a trap", mad.MethodTrap, level)
	}
}

// QP-15: agents and managers send the default key, and QP0 of a host what it asks for;
// the packets carry it through the fabric to whoever takes them.
func TestManagementKeys(t *testing.T) {
	seen := map[mad.Method]ib.PKey{}
	c := fabric.DefaultConfig()
	c.Trace = func(s fabric.Sighting) {
		if s.What == fabric.SeenLeaving {
			seen[mad.Method(s.MAD[3])] = s.PKey
		}
	}
	b := newBench(t, star(t), c)
	for i := range 3 {
		b.keys(hostGUID(i+1), 1, 0x8005) // the default key is in no table
	}
	clear(seen)
	b.manage(hostGUID(1), 1, func(c *client) {
		var info smp.NodeInfo
		c.must(byLID(mad.MethodGet, smp.AttrNodeInfo, 0), 3, &info)
	})
	if seen[mad.MethodGet] != 0xFFFF || seen[mad.MethodGetResp] != 0xFFFF {
		t.Errorf("a manager sent %v and an agent answered with %v", seen[mad.MethodGet], seen[mad.MethodGetResp])
	}
	q, err := b.device(hostGUID(2)).CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.SMI, Port: 1})
	b.must(err)
	for _, s := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
		b.must(q.Modify(endpoint.Kernel, s, 0, endpoint.Attr{}))
	}
	b.must(q.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}))
	p := byLID(mad.MethodGet, smp.AttrNodeInfo, 0)
	var m [mad.Size]byte
	b.must(p.Encode(&m))
	for asked, want := range map[ib.PKey]ib.PKey{0: 0xFFFF, 0x1234: 0x1234} {
		clear(seen)
		b.must(q.PostSend(endpoint.SendRequest{Data: m[:], To: endpoint.Address{DLID: 4}, PKey: asked}))
		b.idle()
		if seen[mad.MethodGet] != want || seen[mad.MethodGetResp] != 0xFFFF {
			t.Errorf("QP0 was asked for %v and sent %v; the answer has %v", asked, seen[mad.MethodGet], seen[mad.MethodGetResp])
		}
	}
}
