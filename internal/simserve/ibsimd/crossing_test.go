package ibsimd_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// crossing sends a packet from every host to every other under every key, and
// holds what arrives against the tenancy that a manager was given. Hosts send
//
//   - as they should: from a queue pair, with a key of their table;
//   - with any other key, put on the wire as an adapter could that obeys nobody.
//
// Each packet is tried on a receiver that checks its table and, by whether it
// got to the receiver's port, on one that takes anything.
type crossing struct {
	y       tenancy
	manager ib.PortGUID
	hosts   []host
	figures figures

	// Of the packet under way.
	to                    *host
	ended, reached, taken bool
}

// host is an end port of a CA or router that a manager has reached.
type host struct {
	name    string
	node    ib.NodeGUID
	num     ib.PortNum
	guid    ib.PortGUID
	lid     ib.LID
	guarded bool // there is a switch before it
	qps     map[ib.PKeyBase]*endpoint.QP
	any     *endpoint.QP // of qps
}

// figures count packets.
type figures struct {
	tried     int
	delivered int // from hosts that send as they should to such that check
	// wanting are those that the policy lets and a switch refused; wantingFull of
	// them were from full members, or where no switch is.
	wanting, wantingFull int
	// forged got to a host that is in a partition with the sender, though one of
	// the two obeyed nobody: limited members of one partition, whom no switch
	// can keep apart. Of them byDefault in the default partition.
	forged, byDefault int
	// crossed got to whom no partition joins with the sender, or were taken
	// from whom the policy keeps apart though all did as they should.
	crossed int
	first   string
	// unguarded is crossed where no switch stands before one of the two.
	unguarded int
}

func (f *figures) add(g figures) {
	f.tried += g.tried
	f.delivered += g.delivered
	f.wanting += g.wanting
	f.wantingFull += g.wantingFull
	f.forged += g.forged
	f.byDefault += g.byDefault
	f.crossed += g.crossed
	f.unguarded += g.unguarded
	if f.first == "" {
		f.first = g.first
	}
}

func (f *figures) String() string {
	return fmt.Sprintf("%d packets tried, %d delivered between hosts that obey, %d refused that the policy lets, "+
		"%d forged among limited members of one partition (%d of the default one), %d crossed between tenants (%d more where there is no switch)",
		f.tried, f.delivered, f.wanting, f.forged, f.byDefault, f.crossed, f.unguarded)
}

// trace watches the packet under way.
func (x *crossing) trace(g fabric.DataSighting) {
	if g.Outcome == fabric.OutcomeLeft {
		return
	}
	x.ended = true
	if x.to != nil && g.Node == x.to.node && g.Port == x.to.num {
		x.taken = g.Outcome == fabric.OutcomeTaken
		x.reached = x.taken || g.Outcome == fabric.OutcomeRefused
	}
}

// find finds the hosts that the manager has reached and makes their queue
// pairs, one for every entry of their tables.
func (x *crossing) find(f *fabric.Fabric, l *topology.Netlist) error {
	self, selfPort, err := l.Attach("")
	if err != nil {
		return err
	}
	x.manager = self.Ports[selfPort].GUID
	for _, n := range l.Nodes {
		if n.Type == ib.NodeSwitch {
			continue
		}
		agent := f.Agent(n.GUID)
		for p := 1; p < len(n.Ports); p++ {
			num := ib.PortNum(p)
			if info := agent.Port(num); info == nil || info.MasterSMLID == 0 {
				continue
			}
			h := host{
				name: fmt.Sprintf("%s[%d]", n.ID, p), node: n.GUID, num: num, guid: n.Ports[p].GUID, lid: agent.Port(num).LID,
				guarded: n.Ports[p].Peer != nil && n.Ports[p].Peer.Type == ib.NodeSwitch,
			}
			d, err := f.Device(n.GUID)
			if err != nil {
				return err
			}
			if err := h.listen(d, agent.PKeys(num)); err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			x.hosts = append(x.hosts, h)
		}
	}
	return nil
}

const (
	crossingQKey  ib.QKey = 7
	crossingQueue int     = 4 // requests under way at one queue pair
)

func (h *host) listen(d *endpoint.Device, table []ib.PKey) error {
	h.qps = map[ib.PKeyBase]*endpoint.QP{}
	for i, key := range table {
		if !key.IsValid() {
			continue
		}
		q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, Port: h.num, SendDepth: crossingQueue, ReceiveDepth: crossingQueue})
		if err != nil {
			return err
		}
		a := endpoint.Attr{Port: h.num, PKeyIndex: uint16(i), QKey: crossingQKey}
		for _, step := range []struct {
			to   endpoint.State
			mask endpoint.AttrMask
		}{
			{endpoint.StateInit, endpoint.AttrPort | endpoint.AttrPKeyIndex | endpoint.AttrQKey},
			{endpoint.StateRTR, 0},
			{endpoint.StateRTS, endpoint.AttrSendPSN},
		} {
			if err := q.Modify(endpoint.Kernel, step.to, step.mask, a); err != nil {
				return err
			}
		}
		if err := q.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 256)}); err != nil {
			return err
		}
		h.qps[key.Base()] = q
		if h.any == nil {
			h.any = q
		}
	}
	if h.any == nil {
		return fmt.Errorf("an empty P_Key table")
	}
	return nil
}

// every tries every packet.
func (x *crossing) every(f *fabric.Fabric) error {
	bases := append([]ib.PKeyBase{ib.PKeyBaseDefault, strangeBase}, x.y.bases...)
	for i := range x.hosts {
		for j := range x.hosts {
			for _, base := range bases {
				for _, key := range []ib.PKey{base.Limited(), base.Full()} {
					if i == j {
						continue
					}
					if err := x.try(f, &x.hosts[i], &x.hosts[j], key); err != nil {
						return fmt.Errorf("from %s to %s with %v: %w", x.hosts[i].name, x.hosts[j].name, key, err)
					}
				}
			}
		}
	}
	return nil
}

// try sends one packet and judges what became of it.
func (x *crossing) try(f *fabric.Fabric, from, to *host, key ib.PKey) error {
	sender, receiver := x.y.is(from.guid, x.manager, key.Base()), x.y.is(to.guid, x.manager, key.Base())
	obeys := sender == full && key.IsFull() || sender == limited && !key.IsFull()
	target := to.qps[key.Base()]
	if target == nil {
		target = to.any
	}
	x.to, x.ended, x.reached, x.taken = to, false, false, false
	var err error
	if obeys {
		err = x.post(from, to, target, key)
	} else {
		err = x.forge(f, from, to, target, key)
	}
	if err != nil {
		return err
	}
	for !x.ended {
		if !f.Step() {
			return fmt.Errorf("it does not end")
		}
	}
	if err := x.settle(from, target, obeys); err != nil {
		return err
	}
	x.judge(from, to, key, obeys, sender, receiver)
	return nil
}

// post sends from the queue pair of a key that the sender has.
func (x *crossing) post(from, to *host, target *endpoint.QP, key ib.PKey) error {
	q := from.qps[key.Base()]
	if q == nil {
		return fmt.Errorf("the sender's table has no such key, which the policy gives it")
	}
	return q.PostSend(endpoint.SendRequest{
		Data: make([]byte, 8), To: endpoint.Address{DLID: to.lid}, RemoteQP: target.Number(), RemoteQKey: crossingQKey,
	})
}

// forge puts a packet with any key on the wire.
func (x *crossing) forge(f *fabric.Fabric, from, to *host, target *endpoint.QP, key ib.PKey) error {
	b, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, make([]byte, 8))
	if err != nil {
		return err
	}
	v.LRH.SetSLID(from.lid)
	v.LRH.SetDLID(to.lid)
	v.BTH.SetPKey(key)
	v.BTH.SetDestQP(target.Number())
	v.DETH.SetQKey(crossingQKey)
	v.DETH.SetSrcQP(from.any.Number())
	if err := packet.Seal(b); err != nil {
		return err
	}
	return f.Inject(from.node, from.num, b)
}

// settle takes what has completed; the receiver must have what the trace says.
func (x *crossing) settle(from *host, target *endpoint.QP, posted bool) error {
	var done [crossingQueue]endpoint.Completion
	if posted {
		for _, q := range from.qps {
			q.Poll(done[:])
		}
	}
	arrived := 0
	for _, c := range done[:target.Poll(done[:])] {
		if c.Op >= endpoint.OpReceive && c.Status == endpoint.Success {
			arrived++
		}
	}
	if arrived > 0 {
		if err := target.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 256)}); err != nil {
			return err
		}
	}
	if (arrived == 1) != x.taken || arrived > 1 {
		return fmt.Errorf("%d messages received, and the trace says taken: %v", arrived, x.taken)
	}
	return nil
}

// judge holds what became of a packet against the tenancy.
func (x *crossing) judge(from, to *host, key ib.PKey, obeys bool, sender, receiver part) {
	f := &x.figures
	f.tried++
	joined := sender != outsider && receiver != outsider
	lets := joined && (sender == full || receiver == full)
	switch {
	case obeys && x.taken && lets:
		f.delivered++
	case obeys && lets:
		f.wanting++
		if sender == full || !from.guarded {
			f.wantingFull++
		}
	case obeys && x.taken:
		x.cross(from, to, key, "is taken, and nobody forged anything")
	case x.reached && joined && !lets:
		f.forged++
		if key.Base() == ib.PKeyBaseDefault {
			f.byDefault++
		}
	case x.reached && !joined && !(from.guarded && to.guarded):
		f.unguarded++
	case x.reached && !joined:
		x.cross(from, to, key, "gets there")
	}
}

func (x *crossing) cross(from, to *host, key ib.PKey, how string) {
	if x.figures.crossed++; x.figures.first == "" {
		x.figures.first = fmt.Sprintf("a packet with %v from %s to %s %s", key, from.name, to.name, how)
	}
}

// crossingOf makes a tenancy for a topology, the same for each manager, and a
// server whose data packets are watched.
func crossingOf(t *testing.T, spec string) (*crossing, *ibsimd.Server, string) {
	l := topologyOf(t, spec)
	var ports []ib.PortGUID
	for _, n := range l.Nodes {
		for p := 1; n.Type != ib.NodeSwitch && p < len(n.Ports); p++ {
			if n.Ports[p].Peer != nil {
				ports = append(ports, n.Ports[p].GUID)
			}
		}
	}
	seed := fnv.New64()
	seed.Write([]byte(spec))
	x := &crossing{y: dealOut(rand.New(rand.NewPCG(seed.Sum64(), 7)), ports)}
	config := fabric.DefaultConfig()
	config.DataTrace = x.trace
	return x, serve(t, l, ibsimd.Config{Fabric: config}), x.y.conf(ports)
}

// run tries every packet on the server's fabric.
func (x *crossing) run(t *testing.T, s *ibsimd.Server) {
	t.Helper()
	var err error
	if bad := s.Do(func(f *fabric.Fabric) {
		if err = x.find(f, s.Topology()); err == nil {
			err = x.every(f)
		}
	}); bad != nil {
		t.Fatal(bad)
	}
	if err != nil {
		t.Fatal(err)
	}
	if x.figures.tried == 0 {
		t.Error("no packet was tried")
	}
}

// check is run after which nothing may have crossed.
func (x *crossing) check(t *testing.T, s *ibsimd.Server) {
	t.Helper()
	x.run(t, s)
	if x.figures.crossed > 0 {
		t.Errorf("%d packets crossed between tenants, the first: %s", x.figures.crossed, x.figures.first)
	}
}

// With OpenSM as the manager and its enforcement on, no packet crosses between
// tenants, from whoever it comes.
//
// Its switch ports hold the keys of their hosts as they are, limited ones too. By
// the rule that a switch goes by, which is that of the hosts, a limited key does
// not match a limited entry: what limited members send to full ones is refused
// at the first switch, and counted here.
func TestNothingCrossesUnderOpenSM(t *testing.T) {
	need.Long(t, "OpenSM on many fabrics")
	tools := needTools(t)
	var total figures
	inSquadrons(t, fleet(t), func(t *testing.T, spec string) trial {
		x, s, conf := crossingOf(t, spec)
		a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
		manager := a.openSM(conf, "", "part_enforce both")
		quiet := settled(t, s)
		return trial{func() bool { return quiet() && manager.says(up) }, func(t *testing.T) {
			manager.TB = t
			manager.stop()
			x.check(t, s)
			if n := x.figures.wantingFull; n > 0 {
				t.Errorf("%d packets were refused that the policy lets, and not for being limited members'", n)
			}
			total.add(x.figures)
		}}
	})
	t.Logf("OpenSM: %v", &total)
	if total.delivered == 0 || total.forged == 0 {
		t.Error("nothing was delivered, or nothing forged came through: the fabrics are not what they should be")
	}
}

// Without enforcement in switches, hosts that obey nobody get anywhere, and it is
// seen.
func TestCrossingIsSeen(t *testing.T) {
	tools := needTools(t)
	x, s, conf := crossingOf(t, fixedFabrics[0])
	a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
	manager := a.openSM(conf, up, "part_enforce off")
	settle(t, s)
	manager.stop()
	x.run(t, s)
	if f := &x.figures; f.crossed == 0 || f.wanting > 0 {
		t.Errorf("%v: want some crossed and none refused", f)
	}
}

// With ibwarden as the manager no packet crosses either, and none that the
// policy lets is refused.
func TestNothingCrossesUnderIbwarden(t *testing.T) {
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	var total figures
	var lock sync.Mutex
	t.Run("fabrics", func(t *testing.T) {
		for i, spec := range fleet(t) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				x, s, conf := crossingOf(t, spec)
				policy := filepath.Join(workDir(t), "partitions.conf")
				if err := os.WriteFile(policy, []byte(conf), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(path, "run", "--once", "--fabric", "ibsim:"+s.Name(), "--policy", policy)
				tame(cmd, filepath.Dir(policy))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: ibwarden run: %v\n%s", spec, err, out)
				}
				x.check(t, s)
				if x.figures.wanting > 0 {
					t.Errorf("%s: %d packets were refused that the policy lets", spec, x.figures.wanting)
				}
				lock.Lock()
				defer lock.Unlock()
				total.add(x.figures)
			})
		}
	})
	t.Logf("ibwarden: %v", &total)
	if total.delivered == 0 || total.forged == 0 {
		t.Error("nothing was delivered, or nothing forged came through: the fabrics are not what they should be")
	}
}
