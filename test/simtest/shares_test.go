package simtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// sharer is a partition of some hosts, on a service level that has a share of every link.
type sharer struct {
	name  string
	sl    ib.SL
	share uint8
	hosts []string
}

// sharers is a policy with shares, in which no host is in the default partition. Servers are
// in all partitions.
func sharers(list []sharer, servers ...string) *policy.Policy {
	s := policy.DefaultSettings()
	p := &policy.Policy{Default: policy.None, TrustDescriptions: true, Settings: &s}
	for i, x := range list {
		if x.share > 0 {
			s.Levels = append(s.Levels, policy.Level{SL: x.sl, Share: x.share})
		}
		part := policy.Partition{Name: x.name, PKey: ib.PKeyBase(0x10 + i), SL: x.sl}
		for _, h := range slices.Concat(x.hosts, servers) {
			part.Members = append(part.Members, policy.Member{Selector: policy.Selector{Kind: policy.SelectDescription, Text: h}, Membership: policy.Full})
		}
		p.Partitions = append(p.Partitions, part)
	}
	return p
}

// slowWith is slow, with arbitration tables of so many entries.
func slowWith(entries uint8) func(*topology.Node, *sma.Config) {
	return func(n *topology.Node, c *sma.Config) {
		slow(n, c)
		for i := range c.Ports {
			if p := &c.Ports[i]; p.VLArbitrationLowCap > 0 {
				p.VLArbitrationLowCap = entries
			}
		}
	}
}

// stream is a host that sends as much as its link carries, in packets of mixed sizes.
type stream struct {
	tenant   int
	from, to *endpoint.QP
	lid      ib.LID
	sl       ib.SL
	posted   int
	sent     int
	came     int
	every    time.Duration // what a byte takes on its link
}

// rivalry is a fabric on which senders of several tenants send all the time.
type rivalry struct {
	*world
	subnet  observed.Subnet
	ports   map[string]*observed.Port
	streams []*stream
	// got are the bytes, with headers, that came for each tenant.
	got    []float64
	buffer []byte
	sizes  []int
	random *rand.Rand
	done   []endpoint.Completion
}

func newRivalry(w *world, tenants int) *rivalry {
	w.t.Helper()
	w.mum = true
	l := &rivalry{
		world: w, ports: map[string]*observed.Port{}, got: make([]float64, tenants), buffer: make([]byte, 4096+endpoint.GRHSize),
		sizes: []int{4096, 64, 2048, 1000, 4096, 256}, random: rand.New(rand.NewPCG(1, 1)), done: make([]endpoint.Completion, loadDepth),
	}
	subnet, ok := w.engine.Subnet()
	if !ok {
		w.t.Fatal("no policy stands")
	}
	l.subnet = subnet
	for _, p := range subnet.Fabric.EndPorts() {
		l.ports[p.Node.Description] = p
	}
	return l
}

// pair has a host send to another on a level, with the key at an index of either's table.
func (l *rivalry) pair(tenant int, level ib.SL, from, to string, fromIndex, toIndex uint16) {
	l.t.Helper()
	a, b := l.ports[from], l.ports[to]
	if a == nil || b == nil {
		l.t.Fatalf("no host %s or %s", from, to)
	}
	h := &stream{
		tenant: tenant, from: l.queue(a.Node.GUID(), fromIndex, 0), to: l.queue(b.Node.GUID(), toIndex, 4*loadDepth),
		lid: b.Info.LID, sl: l.subnet.Levels.Between(level, a, b),
		every: fabric.PerThousand(l.info(place{a.Node.GUID(), a.Num})),
	}
	l.streams = append(l.streams, h)
	l.fabric.At(l.fabric.Now(), func() { l.turn(h) })
}

// queue is a queue pair with room for so many datagrams.
func (l *rivalry) queue(g ib.NodeGUID, index uint16, room int) *endpoint.QP {
	l.t.Helper()
	d, err := l.fabric.Device(g)
	l.must(err)
	q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, SendDepth: loadDepth, ReceiveDepth: max(1, room)})
	l.must(err)
	l.must(q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex|endpoint.AttrQKey, endpoint.Attr{Port: 1, PKeyIndex: index, QKey: loadKey}))
	l.must(q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}))
	l.must(q.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{}))
	for range room {
		l.must(q.PostReceive(endpoint.ReceiveRequest{Buffer: l.buffer}))
	}
	return q
}

// turn has a sender fill its queue, and comes again before that can be empty.
func (l *rivalry) turn(h *stream) {
	for n := h.from.Poll(l.done); n > 0; n = h.from.Poll(l.done) {
		h.sent += n
	}
	bytes := 0
	for h.posted-h.sent < loadDepth {
		size := l.sizes[l.random.IntN(len(l.sizes))]
		bytes += size
		l.must(h.from.PostSend(endpoint.SendRequest{
			ID: sendID, Data: l.buffer[:size], RemoteQP: h.to.Number(), RemoteQKey: loadKey, To: endpoint.Address{DLID: h.lid, SL: h.sl},
		}))
		h.posted++
	}
	for n := h.to.Poll(l.done); n > 0; n = h.to.Poll(l.done) {
		for _, c := range l.done[:n] {
			h.came++
			l.got[h.tenant] += float64(len(c.Bytes)-endpoint.GRHSize) + 34
			l.must(h.to.PostReceive(endpoint.ReceiveRequest{Buffer: l.buffer}))
		}
	}
	l.fabric.At(l.fabric.Now()+turnBytes*h.every/1000, func() { l.turn(h) })
}

// turnBytes is how much a link carries between two turns: less than a queue holds.
const turnBytes = 16 << 10

// measure lets all send, and tells what came for each tenant, in percent, once links are full.
func (l *rivalry) measure(warm, for_ time.Duration) []float64 {
	l.run(warm)
	before := slices.Clone(l.got)
	l.run(for_)
	all := 0.0
	for i := range l.got {
		all += l.got[i] - before[i]
	}
	out := make([]float64, len(l.got))
	for i := range out {
		out[i] = (l.got[i] - before[i]) * 100 / all
	}
	return out
}

// sharesHold wants shares within five parts of a hundred of each.
func sharesHold(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	var text []string
	for i, w := range want {
		text = append(text, fmt.Sprintf("%.2f %% of %.0f", got[i], w))
		if math.Abs(got[i]-w) > w*0.05 {
			t.Errorf("%s: tenant %d has %.2f %%, want %.0f", what, i, got[i], w)
		}
	}
	t.Logf("%s: %s", what, strings.Join(text, ", "))
}

// Three tenants send more to a server than its link carries, whatever the routes and their
// lanes, in packets of mixed sizes: each gets its share, and all others together that of
// level 0.
func TestSharesHoldUnderFullLoad(t *testing.T) {
	for _, c := range []struct {
		engine  routing.Engine
		spec    string
		entries uint8
	}{
		{routing.UpDown, "fattree,radix=8,levels=2,hosts=16", 8},
		{routing.FatTree, "fattree,radix=8,levels=2,hosts=16", 64},
		{routing.DOR, "torus,x=4,y=4,hosts=1", 8},
		{routing.DFSSSP, "torus,x=4,y=4,hosts=1", 64},
		{routing.Dragonfly, "dragonfly,groups=4,leafs=2,spines=2,hosts=2", 8},
	} {
		t.Run(fmt.Sprintf("%s on %s", c.engine, c.spec), func(t *testing.T) {
			list := generate(t, c.spec)
			names := hostNames(list)
			server, rest := names[len(names)-1], names[1:len(names)-1] // the first is the manager's
			parts := []sharer{{name: "zero", sl: 0}, {name: "red", sl: 1, share: 30}, {name: "blue", sl: 3, share: 60}}
			for i, h := range rest {
				parts[i%3].hosts = append(parts[i%3].hosts, h)
			}
			w := bringUp(t, setup{
				list: list, policy: sharers(parts, server), manager: engine.Config{Routing: c.engine},
				fabric: fabric.Config{Profile: slowWith(c.entries), WireTime: true},
			})
			l := newRivalry(w, len(parts))
			for i, x := range parts {
				for _, h := range x.hosts {
					l.pair(i, x.sl, h, server, 0, uint16(i))
				}
			}
			sharesHold(t, "at the server", l.measure(2*time.Millisecond, 20*time.Millisecond), 10, 30, 60)
		})
	}
}

// hostNames are the names of all hosts, in the order of the list.
func hostNames(list *topology.Netlist) (names []string) {
	for _, n := range list.Nodes {
		if n.Type == ib.NodeCA {
			names = append(names, n.Description)
		}
	}
	return names
}

// On a ring whose routes need two lanes, red's packets are on both lanes of a link and blue's
// on one: the share of each level is divided among the lanes that its packets take there,
// and holds.
func TestSharesHoldWhereRoutesNeedLanes(t *testing.T) {
	list := generate(t, "torus,x=8,y=1,hosts=3")
	red, blue := sharer{name: "red", sl: 1, share: 30}, sharer{name: "blue", sl: 3, share: 60}
	for x := range 8 {
		red.hosts = append(red.hosts, fmt.Sprintf("H%d_0_1", x))
		if x < 4 {
			blue.hosts = append(blue.hosts, fmt.Sprintf("H%d_0_2", x))
		}
	}
	w := bringUp(t, setup{
		list: list, policy: sharers([]sharer{red, blue}), manager: engine.Config{Routing: routing.DOR},
		fabric: fabric.Config{Profile: slowWith(64), WireTime: true},
	})
	l := newRivalry(w, 2)
	for _, from := range []int{7, 0, 1} { // all by the link from switch 1 to switch 2
		l.pair(0, red.sl, fmt.Sprintf("H%d_0_1", from), fmt.Sprintf("H%d_0_1", 2+from%2), 0, 0)
	}
	for _, from := range []int{0, 1} {
		l.pair(1, blue.sl, fmt.Sprintf("H%d_0_2", from), "H3_0_2", 0, 0)
	}
	sharesHold(t, "in the middle", l.measure(4*time.Millisecond, 20*time.Millisecond), 100./3, 200./3)
}

// A host that sends on the level of another tenant has that tenant's share, which nothing in
// its packets shows; with qos_enforce its switch drops them, and the tenant keeps its share.
// Who joins the tenant later may send on its level, and who leaves it may not.
func TestLevelsOfOthersGiveNothing(t *testing.T) {
	list := generate(t, "fattree,radix=8,levels=2,hosts=16")
	names := hostNames(list)
	server, red, blue := names[15], names[1:7], names[7:14]
	parts := []sharer{{name: "red", sl: 1, share: 20, hosts: red}, {name: "blue", sl: 3, share: 70, hosts: blue}}
	for _, enforced := range []bool{false, true} {
		p := sharers(parts, server)
		p.Settings.EnforceLevels = enforced
		w := bringUp(t, setup{list: list, policy: p, fabric: fabric.Config{Profile: slowWith(64), WireTime: true}})
		l := newRivalry(w, 3)
		l.pair(0, 1, red[0], server, 0, 0)
		l.pair(1, 3, blue[0], server, 0, 1)
		for _, thief := range red[1:3] { // with their own key, on blue's level
			l.pair(2, 3, thief, server, 0, 0)
		}
		got := l.measure(2*time.Millisecond, 20*time.Millisecond)
		t.Logf("enforced %v: red %.1f %%, blue %.1f %%, red on blue's level %.1f %%", enforced, got[0], got[1], got[2])
		if stolen := got[2] > 30; stolen == enforced {
			t.Errorf("enforced %v: red has %.1f %% by blue's level", enforced, got[2])
		}
		if enforced {
			sharesHold(t, "with thieves", got, 100./4.5, 350./4.5, 0)
			now := slices.Clone(parts)
			now[0].hosts, now[1].hosts = slices.Concat(red[:1], red[2:]), append([]string{red[1]}, blue...)
			p := sharers(now, server)
			p.Settings.EnforceLevels = true
			w.change(p)
			l = newRivalry(w, 1)
			l.pair(0, 3, red[1], server, 0, 1)
			l.pair(0, 3, red[2], server, 0, 0)
			l.run(2 * time.Millisecond)
			if l.streams[0].came == 0 || l.streams[1].came != 0 {
				t.Errorf("%d datagrams came of the new member, %d of the one that is none", l.streams[0].came, l.streams[1].came)
			}
		}
	}
}
