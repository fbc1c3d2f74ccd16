package simtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// rawServices are the two kinds of packet that carry no P_Key.
var rawServices = []endpoint.Service{endpoint.RawEtherType, endpoint.RawIPv6}

// tablesHold reports whether the tables and settings that a proof looks at keep
// everybody apart, whoever could change them.
func tablesHold(p *isolation.Proof) bool {
	return p.Verdict == isolation.Isolated || p.Verdict == isolation.Unguarded
}

// sendRaw sends a raw packet from one host to another and reports whether it
// came in.
func (w *world) sendRaw(s endpoint.Service, from, to place) bool {
	w.t.Helper()
	qp := func(at place) *endpoint.QP {
		d, err := w.fabric.Device(at.node)
		if err != nil {
			w.t.Fatal(err)
		}
		q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: s, SendDepth: 1, ReceiveDepth: 1})
		for _, step := range []func() error{
			func() error { return err },
			func() error {
				return q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort, endpoint.Attr{Port: at.num})
			},
			func() error { return q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}) },
			func() error { return q.Modify(endpoint.Kernel, endpoint.StateRTS, 0, endpoint.Attr{}) },
			func() error { return q.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}) },
		} {
			if err := step(); err != nil {
				w.t.Fatal(err)
			}
		}
		return q
	}
	a, b := qp(from), qp(to)
	if err := a.PostSend(endpoint.SendRequest{
		Data: bytes.Repeat([]byte{0x60}, 64), EtherType: 0x88B5, To: endpoint.Address{DLID: w.info(to).LID},
	}); err != nil {
		w.t.Fatal(err)
	}
	w.fabric.AdvanceTo(w.fabric.Now() + engine.DefaultSweepInterval/100)
	var done [2]endpoint.Completion
	n := b.Poll(done[:])
	a.Destroy()
	b.Destroy()
	return n == 1 && done[0].Status == endpoint.Success
}

// rawPassed sends both kinds both ways between two hosts and says how many of the four arrived.
func (w *world) rawPassed(a, b string) (n int) {
	for _, s := range rawServices {
		for _, ends := range [][2]string{{a, b}, {b, a}} {
			if w.sendRaw(s, w.host(ends[0]), w.host(ends[1])) {
				n++
			}
		}
	}
	return n
}

func (w *world) wantRaw(when, a, b string, want int) {
	w.t.Helper()
	if got := w.rawPassed(a, b); got != want {
		w.t.Errorf("%s: %d of 4 raw packets arrived between %s and %s, want %d", when, got, a, b, want)
	}
}

// wantFilters wants the switch ports before hosts to filter raw packets in both
// directions, or in none, and those between switches in none.
func (w *world) wantFilters(on bool) {
	w.t.Helper()
	before := 0
	for _, n := range w.list.Nodes {
		for num := 1; n.Type == ib.NodeSwitch && num < len(n.Ports); num++ {
			peer := n.Ports[num].Peer
			if peer == nil {
				continue
			}
			want := on && peer.Type != ib.NodeSwitch
			if want {
				before++
			}
			if i := w.info(place{n.GUID, ib.PortNum(num)}); i.FilterRawInbound != want || i.FilterRawOutbound != want {
				w.t.Errorf("%s:%d: filters %v, %v; want %v", n.ID, num, i.FilterRawInbound, i.FilterRawOutbound, want)
			}
		}
	}
	if on && before != len(hosts(w.list)) {
		w.t.Errorf("%d ports before hosts", before)
	}
}

func tenantWorld(t *testing.T, p protect.Profile, change func(*setup)) (*world, *policy.Policy) {
	t.Helper()
	list := topology.Demo()
	s := setup{list: list, policy: halves(hosts(list)).policy()}
	s.manager.Profile = p
	if change != nil {
		change(&s)
	}
	w := bringUp(t, s)
	w.calm()
	return w, s.policy
}

// Raw packets carry no P_Key: they go between tenants where no switch port
// filters them, and nowhere where the manager has the filters on.
func TestRawPacketsAreFiltered(t *testing.T) {
	for _, p := range []protect.Profile{protect.None, protect.Basic, protect.Tenant, protect.Strict} {
		t.Run(p.String(), func(t *testing.T) {
			w, _ := tenantWorld(t, p, nil)
			want := 0
			if p == protect.None {
				want = 4
			}
			w.wantRaw("up", "red-1", "blue-1", want) // over the spines
			w.wantRaw("up", "red-1", "red-2", want)  // on one leaf
			w.wantRaw("up", "mgmt-1", "blue-1", want)
			w.wantFilters(p != protect.None)
			if r := w.result(); !tablesHold(r.Proof) || r.Proof.Counts.Raw != 0 {
				t.Errorf("verdict %v, %d raw: %q", r.Proof.Verdict, r.Proof.Counts.Raw, r.Proof.Reasons)
			}
		})
	}
}

// A policy can let raw packets pass and stop them again, on a live fabric; what
// somebody else turns off is put right.
func TestRawPacketsByPolicy(t *testing.T) {
	w, closed := tenantWorld(t, protect.Tenant, nil)
	open := *closed
	open.AllowRaw = true
	for round := range 2 {
		w.forget()
		w.change(&open)
		w.wantRaw("allowed", "red-1", "blue-1", 4)
		r := w.result()
		if !tablesHold(r.Proof) || !strings.Contains(strings.Join(r.Proof.Caveats, "\n"), "raw packets") {
			t.Errorf("round %d, allowed: verdict %v with %q", round, r.Proof.Verdict, r.Proof.Caveats)
		}
		w.forget()
		w.change(closed)
		w.wantRaw("denied again", "red-1", "blue-1", 0)
		if r := w.result(); !tablesHold(r.Proof) || len(r.Proof.Caveats) != 1 { // limited members
			t.Errorf("round %d, denied: verdict %v with %q", round, r.Proof.Verdict, r.Proof.Caveats)
		}
	}
	w.forget()
	for _, h := range []string{"red-1", "blue-1"} {
		w.setPortInfo(w.switchPort(h), func(i *smp.PortInfo) { i.FilterRawInbound, i.FilterRawOutbound = false, false })
	}
	w.wantRaw("turned off behind the manager's back", "red-1", "blue-1", 4)
	w.run(2 * engine.DefaultDriftPeriod)
	w.settle()
	w.wantRaw("put right", "red-1", "blue-1", 0)
	if n := len(all[event.Drifted](w)); n != 2 {
		t.Errorf("%d drifts were reported, want 2", n)
	}
}

// Where a switch cannot filter, or says that it can and does not keep it, the
// verdict is weaker and names the ports; one filter of the two is enough.
func TestRawPacketsWhereNobodyFilters(t *testing.T) {
	able := func(in, out bool, ids ...string) func(*setup) {
		return func(s *setup) {
			s.fabric.Profile = func(n *topology.Node, c *sma.Config) {
				if c.Switch != nil && (ids == nil || slices.Contains(ids, n.ID)) {
					c.Switch.FilterRawInboundCap, c.Switch.FilterRawOutboundCap = in, out
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		setup  func(*setup)
		arrive int
		reason string
	}{
		{"no switch can", able(false, false), 4, "FilterRawInboundCap is 0, FilterRawOutboundCap is 0: leaf-2:1, leaf-3:1, leaf-4:1 and 12 more"},
		{"all can inbound", able(true, false), 0, ""},
		{"all can outbound", able(false, true), 0, ""},
		{"one leaf cannot", able(false, false, "leaf-3"), 0, "FilterRawOutboundCap is 0: leaf-3:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := tenantWorld(t, protect.Tenant, c.setup)
			w.wantRaw(c.name, "red-1", "blue-1", c.arrive)
			r := w.result()
			if got := strings.Join(r.Proof.Reasons, "\n"); tablesHold(r.Proof) != (c.reason == "") || !strings.Contains(got, c.reason) {
				t.Errorf("verdict %v: %s", r.Proof.Verdict, got)
			}
			if want := c.reason != ""; want != (r.Proof.Counts.Raw > 0) {
				t.Errorf("%d pairs", r.Proof.Counts.Raw)
			}
			if !r.Reached() {
				t.Error("what the fabric cannot do keeps it from being up")
			}
		})
	}
}

// While hosts come and go nobody who is new gets a raw packet through, and
// a fenced port keeps its filters even where the policy lets raw packets pass.
func TestRawPacketsOfTheNewAndTheFenced(t *testing.T) {
	w, closed := tenantWorld(t, protect.Tenant, nil)
	at, host := w.switchPort("red-1"), w.host("red-1")
	if err := w.fabric.Unlink(at.node, at.num); err != nil {
		t.Fatal(err)
	}
	w.run(2 * engine.DefaultSweepInterval)
	w.setPortInfo(at, func(i *smp.PortInfo) { i.FilterRawInbound, i.FilterRawOutbound = false, false })
	if err := w.fabric.Link(at.node, at.num, host.node, host.num); err != nil {
		t.Fatal(err)
	}
	open := func(when string) func(arrival) {
		return func(a arrival) {
			if info := w.info(at); info.PortState == smp.PortActive && !(info.FilterRawInbound && info.FilterRawOutbound) {
				t.Errorf("%s: the link is Active with filters %v, %v", when, info.FilterRawInbound, info.FilterRawOutbound)
			}
		}
	}
	w.watch = open("came back")
	w.calm()
	w.watch = nil
	if w.info(at).PortState != smp.PortActive {
		t.Fatal("the link did not come up")
	}
	allowed := *closed
	allowed.AllowRaw = true
	w.engine.Fence(smPlace(at), "a test says so")
	w.step()
	w.change(&allowed)
	if info := w.info(at); !info.FilterRawInbound || !info.FilterRawOutbound {
		t.Error("a fence lets raw packets pass")
	}
	w.wantRaw("fenced", "red-1", "blue-1", 0)
	w.wantRaw("allowed", "red-2", "blue-1", 4)
}

// The bits go on before anything widens: between every two SMPs on the way from
// a fabric without filters to one with, and from one tenancy to another, nobody
// is sent a raw packet that went neither before nor would after. apply does as run does.
func TestRawPacketsOnTheWay(t *testing.T) {
	w, p := tenantWorld(t, protect.None, nil)
	w.stop()
	seen := map[bool]int{}
	closedOnce := map[place]bool{}
	w.watch = func(a arrival) {
		for _, h := range []string{"red-1", "red-6", "blue-1", "storage-1"} {
			at := w.switchPort(h)
			on := w.info(at).FilterRawInbound && w.info(at).FilterRawOutbound
			if seen[on]++; closedOnce[at] && !on {
				t.Errorf("%v is open again", at)
			}
			closedOnce[at] = closedOnce[at] || on
		}
	}
	link, err := inproc.New(w.fabric, w.self.node, w.self.num, false)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	journal := memory{}
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown, Profile: protect.Tenant}, &journal)
	if err != nil {
		t.Fatal(err)
	}
	out, err := daemon.Apply(context.Background(), daemon.NewRunner(link, config, server.Config{}, p, silent{}), daemon.ApplyOptions{
		Policy: p, Journal: &journal, Approve: func(*daemon.Proposal) (bool, error) { return false, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !tablesHold(out.Proof) || seen[true] == 0 || seen[false] == 0 {
		t.Errorf("verdict %v, %v", out.Proof.Verdict, seen)
	}
	if journal.entry.Raw != isolation.RawDenied {
		t.Errorf("the journal says raw packets are %v", journal.entry.Raw)
	}
	w.wantRaw("applied", "red-1", "blue-1", 0)
	for _, x := range hosts(w.list) {
		if node, num, ok := w.fabric.EndPort(x); ok {
			at, _ := w.peer(place{node, num})
			if i := w.info(at); !i.FilterRawInbound || !i.FilterRawOutbound {
				t.Errorf("%s: filters %v, %v", fmt.Sprint(ib.PortGUID(x)), i.FilterRawInbound, i.FilterRawOutbound)
			}
		}
	}
}
