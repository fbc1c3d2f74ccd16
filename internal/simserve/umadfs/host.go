package umadfs

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
)

// host is a node of the fabric with the devices of its ports.
type host struct {
	fabric *fabric.Fabric
	guid   ib.NodeGUID
	ports  []*port
	users  int // namespaces that see it
	record func(*packet.MADPacket)
}

// port joins one end port's management queue pairs to its layer.
type port struct {
	host    *host
	num     ib.PortNum
	layer   *kernel.Layer
	smi     *fabric.Attachment
	gsi     *endpoint.GSIPair
	files   map[*kernel.File]func() // what tells of news
	waiting []*managerOpening       // for the place of the subnet manager

	delivery fabric.Delivery
	packet   kernel.Packet
}

func newHost(f *fabric.Fabric, guid ib.NodeGUID, record func(*packet.MADPacket)) (*host, error) {
	agent := f.Agent(guid)
	if agent == nil {
		return nil, fmt.Errorf("node %v: no such node in this fabric", guid)
	}
	device, err := f.Device(guid)
	if err != nil {
		return nil, err
	}
	h := &host{fabric: f, guid: guid, record: record}
	first, last := endPorts(agent)
	for num := first; num <= last; num++ {
		p, err := newPort(h, device, agent, num)
		if err != nil {
			h.leave()
			return nil, err
		}
		h.ports = append(h.ports, p)
	}
	return h, nil
}

// endPorts are the ports of a node that have queue pairs.
func endPorts(agent *sma.Agent) (first, last ib.PortNum) {
	info := agent.NodeInfo(0)
	if info.NodeType == ib.NodeSwitch {
		return 0, 0
	}
	return 1, ib.PortNum(info.NumPorts)
}

func newPort(h *host, device *endpoint.Device, agent *sma.Agent, num ib.PortNum) (p *port, err error) {
	p = &port{host: h, num: num, files: map[*kernel.File]func(){}}
	p.layer = kernel.New(kernel.Config{Port: num, GIDs: int(agent.Port(num).GUIDCap), Agent: p.local})
	if p.smi, err = h.fabric.Attach(h.guid, num); err != nil {
		return nil, err
	}
	p.gsi, err = endpoint.OpenGSI(device, num)
	if err != nil {
		p.leave()
		return nil, fmt.Errorf("node %v: %w", h.guid, err)
	}
	return p, nil
}

// leave gives the queue pairs back.
func (h *host) leave() {
	for _, p := range h.ports {
		p.leave()
	}
	h.ports = nil
}

func (p *port) leave() {
	p.layer.Remove()
	p.wake()
	p.smi.Detach()
	if p.gsi != nil {
		p.gsi.Close()
	}
}

// turn moves what is on its way between the fabric and the programs, and
// reports whether anything was.
func (p *port) turn(now time.Duration) (moved bool) {
	p.follow()
	for p.smi.Receive(&p.delivery) {
		p.packet = kernel.Packet{MAD: p.delivery.MAD, Address: kernel.Address{LID: p.delivery.SLID}}
		p.recordSMP(p.delivery.SLID, p.own(p.delivery.SLID))
		p.layer.Receive(now, &p.packet)
		moved = true
	}
	if p.gsi.Receive(func(c *endpoint.Completion, m *[mad.Size]byte) { p.complete(now, c, m) }) {
		moved = true
	}
	if at, ok := p.layer.Deadline(); ok && at <= now {
		p.layer.Expire(now)
	}
	for p.layer.Next(now, &p.packet) {
		p.send()
		moved = true
	}
	p.wake()
	return moved
}

// follow tells the layer what a manager has written of the port since.
func (p *port) follow() { p.layer.SetLMC(p.info().LMC) }

func (p *port) info() *smp.PortInfo { return p.host.fabric.Agent(p.host.guid).Port(p.num) }

// complete takes a datagram that arrived at queue pair 1.
func (p *port) complete(now time.Duration, c *endpoint.Completion, m *[mad.Size]byte) {
	p.packet = kernel.Packet{QP: 1, MAD: *m, Address: kernel.Address{
		QPN: uint32(c.SrcQP), LID: c.SLID, SL: uint8(c.SL), PKeyIndex: c.PKeyIndex,
		PathBits: uint8(c.DLID & (1<<p.info().LMC - 1)), HasGRH: c.Global,
	}}
	if c.Global {
		p.packet.GRH = readGRH(c.Bytes)
	}
	p.recordGMP(c.SLID, c.DLID)
	p.layer.Receive(now, &p.packet)
}

// send puts a datagram of the layer on its way. What the queue pair refuses is
// lost, as on a wire; the layer sends again or times out.
func (p *port) send() {
	if p.packet.QP == 0 {
		p.recordSMP(p.own(p.packet.LID), p.packet.LID)
		p.smi.Send(&p.packet.MAD, p.packet.LID)
		return
	}
	a := &p.packet.Address
	p.recordGMP(p.own(a.LID)+ib.LID(a.PathBits), a.LID)
	_ = p.gsi.Send(&p.packet.MAD, endpoint.SendRequest{
		RemoteQP: ib.QPN(a.QPN), PKeyIndex: a.PKeyIndex,
		To: endpoint.Address{
			DLID: a.LID, SL: ib.SL(a.SL), SourcePathBits: a.PathBits,
			Global: a.HasGRH, DGID: a.GRH.GID, SGIDIndex: a.GRH.GIDIndex,
			TClass: a.GRH.TrafficClass, FlowLabel: a.GRH.FlowLabel, HopLimit: a.GRH.HopLimit,
		},
	})
}

// local gives the port's own agent what a program asks of it.
func (p *port) local(m *[mad.Size]byte) sma.Verdict {
	record := func() { p.host.record(&packet.MADPacket{SLID: ib.LIDPermissive, DLID: ib.LIDPermissive, MAD: m[:]}) }
	record()
	verdict := p.smi.Local(m)
	if verdict == sma.Answered {
		record()
	}
	return verdict
}

// own is this side's LID in a packet to or from another: the permissive one by
// directed route, and while the port has none.
func (p *port) own(other ib.LID) ib.LID {
	lid := p.info().LID
	if lid == ib.LIDReserved || other == ib.LIDPermissive {
		return ib.LIDPermissive
	}
	return lid
}

func (p *port) recordSMP(slid, dlid ib.LID) {
	p.host.record(&packet.MADPacket{SLID: slid, DLID: dlid, MAD: p.packet.MAD[:]})
}

// recordGMP leaves out what has no P_Key: it does not leave either.
func (p *port) recordGMP(slid, dlid ib.LID) {
	a := &p.packet.Address
	if table := p.host.fabric.Agent(p.host.guid).PKeys(p.num); int(a.PKeyIndex) < len(table) {
		p.host.record(&packet.MADPacket{
			QP: ib.QP1, SLID: slid, DLID: dlid, SL: ib.SL(a.SL), PKey: table[a.PKeyIndex], MAD: p.packet.MAD[:],
		})
	}
}

// wake tells programs what they have to read.
func (p *port) wake() {
	for _, f := range p.layer.Ready() {
		if news := p.files[f]; news != nil {
			news()
		}
	}
}

// readGRH is the other side's address in the room before a datagram.
func readGRH(b []byte) umad.GRH {
	g := umad.GRH{
		TrafficClass: b[0]<<4 | b[1]>>4,
		FlowLabel:    uint32(b[1]&0xF)<<16 | uint32(b[2])<<8 | uint32(b[3]),
		HopLimit:     b[7],
	}
	copy(g.GID[:], b[8:24])
	return g
}
