package simtest

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// groups is a fabric with a manager, the administration of its subnet, and
// hosts that join multicast groups and send packets to them.
type groups struct {
	t      *testing.T
	list   *topology.Netlist
	fabric *fabric.Fabric
	self   place
	config engine.Config
	admin  server.Config
	link   *inproc.Link
	runner *daemon.Runner
	events []event.Event
	guests map[ib.PortGUID]*guest
	hosts  map[place]ib.PortGUID
	// came are the packets that reached end ports since the last probe, by the
	// number of the packet and the port.
	came map[uint32]map[ib.PortGUID]int
	// watch, when set, sees every packet just before an agent acts on it.
	watch func(fabric.Sighting)
}

func newGroups(t *testing.T, list *topology.Netlist, c fabric.Config, p *policy.Policy) *groups {
	t.Helper()
	w := &groups{t: t, list: list, guests: map[ib.PortGUID]*guest{}, hosts: map[place]ib.PortGUID{}, came: map[uint32]map[ib.PortGUID]int{}}
	c.DataTrace = w.saw
	c.Trace = func(s fabric.Sighting) {
		if w.watch != nil && s.What == fabric.SeenByAgent {
			w.watch(s)
		}
	}
	var err error
	if w.fabric, err = fabric.New(list, c); err != nil {
		t.Fatal(err)
	}
	node, num, err := list.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	w.self = place{node.GUID, num}
	for _, n := range list.Nodes {
		for i := range n.Ports {
			if n.Type != ib.NodeSwitch && i > 0 && n.Ports[i].Peer != nil && n.GUID != node.GUID {
				w.hosts[place{n.GUID, ib.PortNum(i)}] = n.Ports[i].GUID
			}
		}
	}
	w.config = engine.Config{Routing: routing.UpDown, ReadLanes: true} // for traces
	w.come(p, nil)
	return w
}

// come lets a manager come, with what an earlier one kept or with nothing.
func (w *groups) come(p *policy.Policy, kept *server.State) {
	w.t.Helper()
	var err error
	if w.link, err = inproc.New(w.fabric, w.self.node, w.self.num, false); err != nil {
		w.t.Fatal(err)
	}
	w.runner = daemon.NewRunner(w.link, w.config, w.admin, p, w)
	if kept != nil {
		if err := w.runner.Administration().Restore(w.fabric.Now(), *kept); err != nil {
			w.t.Fatal(err)
		}
	}
}

// restart lets another manager come in place of the one that is there.
func (w *groups) restart(p *policy.Policy, keep bool) {
	w.t.Helper()
	var kept *server.State
	if keep {
		s := w.runner.Administration().State(w.fabric.Now())
		kept = &s
	}
	if err := w.link.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.come(p, kept)
	w.settle()
}

// Event and Progress make it the watcher of its manager.
func (w *groups) Event(e event.Event)     { w.events = append(w.events, e) }
func (w *groups) Progress(string, uint64) {}

// until lets time pass until done reports true.
func (w *groups) until(what string, done func() bool) {
	w.t.Helper()
	end := w.fabric.Now() + limit
	if err := w.runner.Run(w.t.Context(), func() bool { return done() || w.fabric.Now() > end }); err != nil {
		w.t.Fatalf("until %s: %v", what, err)
	}
	if !done() {
		w.t.Fatalf("%s: not within %v", what, limit)
	}
}

// settle lets time pass until manager and tables follow what was asked. Every
// time that the manager is driven again it announces itself, and sweeps a second
// later.
func (w *groups) settle() {
	w.t.Helper()
	w.until("the manager settles", w.runner.Engine().Settled)
	w.run(2500 * time.Millisecond)
}

// run lets a stretch of time pass, and then what is under way come to its end.
func (w *groups) run(d time.Duration) {
	w.t.Helper()
	over := false
	w.fabric.At(w.fabric.Now()+d, func() { over = true })
	w.until("time passes", func() bool { return over && w.runner.Engine().Settled() })
}

// change gives the manager another policy and waits until it stands.
func (w *groups) change(p *policy.Policy) {
	w.t.Helper()
	w.runner.Engine().SetPolicy(p)
	w.runner.Engine().Expire(w.fabric.Now())
	w.settle()
}

// markAt is the place of the mark in a datagram to a group.
const markAt = packet.LRHSize + packet.GRHSize + packet.BTHSize + packet.DETHSize

// saw counts the packets that get to hosts, whether or not these take them.
func (w *groups) saw(s fabric.DataSighting) {
	at, ok := w.hosts[place{s.Node, s.Port}]
	if !ok || s.Outcome == fabric.OutcomeLeft || len(s.Bytes) < markAt+4 {
		return
	}
	if !(*packet.LRH)(s.Bytes).DLID().IsMulticast() {
		return
	}
	n := binary.BigEndian.Uint32(s.Bytes[markAt:])
	if w.came[n] == nil {
		w.came[n] = map[ib.PortGUID]int{}
	}
	w.came[n][at]++
}

// guest is a host that joins groups.
type guest struct {
	*groups
	guid  ib.PortGUID
	at    place
	gsi   *endpoint.QP
	rooms [8][endpoint.GRHSize + mad.Size]byte
	tid   uint64
}

// host is the guest at a port.
func (w *groups) host(guid ib.PortGUID) *guest {
	w.t.Helper()
	if h := w.guests[guid]; h != nil {
		return h
	}
	h := &guest{groups: w, guid: guid, tid: uint64(guid) << 16}
	for at, g := range w.hosts {
		if g == guid {
			h.at = at
		}
	}
	device, err := w.fabric.Device(h.at.node)
	if err != nil {
		w.t.Fatal(err)
	}
	h.gsi, err = device.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.GSI, Port: h.at.num})
	for _, to := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
		if err == nil {
			err = h.gsi.Modify(endpoint.Kernel, to, 0, endpoint.Attr{})
		}
	}
	for i := range h.rooms {
		if err == nil {
			err = h.gsi.PostReceive(endpoint.ReceiveRequest{ID: uint64(i), Buffer: h.rooms[i][:]})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.guests[guid] = h
	return h
}

// gid is the port's first.
func (h *guest) gid() ib.GID { return ib.MakeGID(ib.DefaultGIDPrefix, h.guid) }

// ask sends subnet administration a request about memberships, again and again
// while it is busy, and gives its answer.
func (h *guest) ask(method mad.Method, mask sa.ComponentMask, r *sa.MCMemberRecord) (sa.MCMemberRecord, mad.Status) {
	h.t.Helper()
	b, err := r.AppendBinary(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for {
		h.tid++
		m := sa.MAD{Header: mad.Header{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
			Method: method, TransactionID: h.tid, AttributeID: sa.AttrMCMemberRecord,
		}, ComponentMask: mask}
		copy(m.Data[:], b)
		bytes, err := m.AppendBinary(nil)
		if err != nil {
			h.t.Fatal(err)
		}
		info := h.fabric.Agent(h.at.node).Port(h.at.num)
		if err := h.gsi.PostSend(endpoint.SendRequest{
			Op: endpoint.OpSend, Data: bytes, RemoteQP: ib.QP1, RemoteQKey: ib.QKeyGSI, To: endpoint.Address{DLID: info.MasterSMLID},
		}); err != nil {
			h.t.Fatal(err)
		}
		var answer *sa.MAD
		h.until("subnet administration answers", func() bool {
			if answer == nil {
				answer = h.answered()
			}
			return answer != nil
		})
		if answer.Status == mad.StatusBusy {
			continue
		}
		var out sa.MCMemberRecord
		if err := out.UnmarshalBinary(answer.Data[:]); err != nil {
			h.t.Fatal(err)
		}
		return out, answer.Status
	}
}

// answered takes the answer to the last request, if it is there.
func (h *guest) answered() (out *sa.MAD) {
	var done [8]endpoint.Completion
	for n := h.gsi.Poll(done[:]); n > 0; n = h.gsi.Poll(done[:]) {
		for _, c := range done[:n] {
			if c.Op != endpoint.OpReceive {
				continue
			}
			var m sa.MAD
			if err := m.UnmarshalBinary(c.Bytes[endpoint.GRHSize:]); err != nil {
				h.t.Fatal(err)
			}
			if m.TransactionID == h.tid {
				out = &m
			}
			if err := h.gsi.PostReceive(endpoint.ReceiveRequest{ID: c.ID, Buffer: h.rooms[c.ID][:]}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	return out
}

// What the kernel's IPoIB states when it joins the broadcast group, and what it
// states on top of that for every other group, which it may have to create.
const (
	joinsBroadcast = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordPKey | sa.MCMemberRecordJoinState
	joinsOther     = joinsBroadcast | sa.MCMemberRecordQKey | sa.MCMemberRecordMTUSelector | sa.MCMemberRecordMTU |
		sa.MCMemberRecordTClass | sa.MCMemberRecordRateSelector | sa.MCMemberRecordRate | sa.MCMemberRecordSL |
		sa.MCMemberRecordFlowLabel | sa.MCMemberRecordHopLimit
	leaves = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState
)

// broadcastOf is the IPoIB broadcast group of a partition, ipGroup one of its
// IPv4 groups.
func broadcastOf(base ib.PKeyBase) ib.GID {
	return policy.MulticastGroup{MGID: policy.Broadcast(policy.ScopeLink)}.AddressIn(base)
}

func ipGroup(base ib.PKeyBase, address uint32) ib.GID {
	g := broadcastOf(base)
	binary.BigEndian.PutUint32(g[12:], address&0x0FFF_FFFF)
	return g
}

// enter joins the broadcast group of a partition as the kernel does, and then
// another group with what it learned from that.
func (h *guest) enter(base ib.PKeyBase, others ...ib.GID) {
	h.t.Helper()
	b := h.join(broadcastOf(base), base)
	for _, mgid := range others {
		r := b
		r.MGID, r.PortGID, r.JoinState, r.HopLimit = mgid, h.gid(), sa.JoinFull, 0
		if _, status := h.ask(mad.MethodSet, joinsOther, &r); status != mad.StatusOK {
			h.t.Fatalf("%s joins %s: %s", h.guid, mgid, status)
		}
	}
}

// join joins a group that is there.
func (h *guest) join(mgid ib.GID, base ib.PKeyBase) sa.MCMemberRecord {
	h.t.Helper()
	out, status := h.ask(mad.MethodSet, joinsBroadcast, &sa.MCMemberRecord{
		MGID: mgid, PortGID: h.gid(), PKey: base.Full(), JoinState: sa.JoinFull,
	})
	if status != mad.StatusOK {
		h.t.Fatalf("%s joins %s: %s", h.guid, mgid, status)
	}
	return out
}

func (h *guest) leave(mgid ib.GID, state sa.JoinState) {
	h.t.Helper()
	if _, status := h.ask(mad.MethodDelete, leaves, &sa.MCMemberRecord{MGID: mgid, PortGID: h.gid(), JoinState: state}); status != mad.StatusOK {
		h.t.Fatalf("%s leaves %s: %s", h.guid, mgid, status)
	}
}

// send puts a marked datagram for a group on the wire.
func (h *guest) send(g *group.Group, mark uint32) {
	h.t.Helper()
	b, v, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), true, make([]byte, 64))
	if err != nil {
		h.t.Fatal(err)
	}
	v.GRH.SetSGID(h.gid())
	v.GRH.SetDGID(g.MGID)
	v.LRH.SetSLID(h.fabric.Agent(h.at.node).Port(h.at.num).LID)
	v.LRH.SetDLID(g.MLID)
	v.BTH.SetPKey(g.Partition.Full())
	v.BTH.SetDestQP(ib.QPMulticast)
	v.DETH.SetQKey(g.QKey)
	v.DETH.SetSrcQP(77)
	binary.BigEndian.PutUint32(b[markAt:], mark)
	if err := packet.Seal(b); err != nil {
		h.t.Fatal(err)
	}
	if err := h.fabric.Inject(h.at.node, h.at.num, b); err != nil {
		h.t.Fatal(err)
	}
}

// probe sends a packet from every host to every group: it has to reach every
// member that receives, once, and nobody else, whoever sends it. From outside
// the partition it reaches nobody. It tells how many packets reached anybody.
func (w *groups) probe() (reached int) {
	w.t.Helper()
	type sent struct {
		from *guest
		to   *group.Group
	}
	var all []sent
	clear(w.came)
	for _, guid := range slices.Sorted(maps.Values(w.hosts)) {
		for _, g := range w.runner.Administration().Groups().Groups() {
			w.host(guid).send(g, uint32(len(all)))
			all = append(all, sent{w.host(guid), g})
		}
	}
	w.settle()
	for n, s := range all {
		member := s.to.Member(s.from.guid)
		for _, m := range s.to.Members {
			got := w.came[uint32(n)][m.Port]
			switch {
			case m.Port == s.from.guid, !m.Receives(), member == nil:
			case got != 1:
				w.t.Errorf("%s sends to %s (MLID %s): %s gets %d copies, want 1", s.from.guid, s.to.MGID, s.to.MLID, m.Port, got)
			}
		}
		for to, got := range w.came[uint32(n)] {
			m := s.to.Member(to)
			if got > 1 || m == nil || !m.Receives() || !w.holds(s.from, s.to.Partition) {
				w.t.Errorf("%s sends to %s (MLID %s): %s gets %d copies", s.from.guid, s.to.MGID, s.to.MLID, to, got)
			}
			reached++
		}
	}
	return reached
}

// holds reports whether a host has a key of a partition.
func (w *groups) holds(h *guest, base ib.PKeyBase) bool {
	return slices.ContainsFunc(w.fabric.Agent(h.at.node).PKeys(h.at.num), func(k ib.PKey) bool { return k.IsValid() && k.Base() == base })
}
