package inproc

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/endpoint"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
	"github.com/ibwarden/ibwarden/internal/transport"
)

// gsiDepth is how many datagrams may wait at queue pair 1 in either direction.
// What arrives beyond it is dropped, as by an adapter; what is to leave waits
// with the engine.
const gsiDepth = 512

// datagram is the room for one that arrives at queue pair 1.
const datagram = endpoint.GRHSize + mad.Size

// generalHops is the hop limit of what answers a datagram with a route header.
const generalHops = 0xFF

// gsi is the general services queue pair of the link's port. It is taken while
// a transport.General is driven.
type gsi struct {
	fabric  *fabricsim.Fabric
	node    ib.NodeGUID
	port    ib.PortNum
	qp      *endpoint.QP
	rooms   [gsiDepth][datagram]byte
	out     [gsiDepth][mad.Size]byte // of what is on its way, by its ID
	posted  uint64
	sending int
	done    [32]endpoint.Completion
}

// openGSI takes the queue pair. Somebody else may have it.
func openGSI(f *fabricsim.Fabric, node ib.NodeGUID, num ib.PortNum) (*gsi, error) {
	device, err := f.Device(node)
	if err != nil {
		return nil, err
	}
	g := &gsi{fabric: f, node: node, port: num}
	g.qp, err = device.CreateQP(endpoint.Kernel, endpoint.QPConfig{
		Service: endpoint.GSI, Port: num, SendDepth: gsiDepth, ReceiveDepth: gsiDepth,
	})
	if err != nil {
		return nil, err
	}
	for _, to := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
		if err == nil {
			err = g.qp.Modify(endpoint.Kernel, to, 0, endpoint.Attr{})
		}
	}
	for i := range g.rooms {
		if err == nil {
			err = g.post(uint64(i))
		}
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *gsi) post(room uint64) error {
	return g.qp.PostReceive(endpoint.ReceiveRequest{ID: room, Buffer: g.rooms[room][:]})
}

func (g *gsi) close() { g.qp.Destroy() }

// send sends what the engine has, and reports whether that was anything.
func (g *gsi) send(e transport.General) (some bool) {
	for g.sending < gsiDepth {
		m := &g.out[g.posted%gsiDepth]
		to, ok := e.NextGeneral(g.fabric.Now(), m)
		if !ok {
			return some
		}
		some = true
		err := g.qp.PostSend(endpoint.SendRequest{
			ID: g.posted, Op: endpoint.OpSend, Data: m[:],
			RemoteQP: to.QP, RemoteQKey: ib.QKeyGSI, PKeyIndex: g.index(to.PKey),
			To: endpoint.Address{DLID: to.LID, SL: to.SL, Global: to.GID != ib.GID{}, DGID: to.GID, HopLimit: generalHops},
		})
		if err == nil { // else it is lost, as on a wire
			g.posted++
			g.sending++
		}
	}
	return some
}

// index is the place in the port's table of a key's partition; of one that is
// not there, or is not known, the first.
func (g *gsi) index(key ib.PKey) uint16 {
	for i, k := range g.fabric.Agent(g.node).PKeys(g.port) {
		if key != 0 && k.Base() == key.Base() {
			return uint16(i)
		}
	}
	return 0
}

// receive hands the engine what came in, and reports whether that was anything.
func (g *gsi) receive(now time.Duration, e transport.General) (some bool) {
	for n := g.qp.Poll(g.done[:]); n > 0; n = g.qp.Poll(g.done[:]) {
		for i := range g.done[:n] {
			c := &g.done[i]
			if c.Op != endpoint.OpReceive {
				g.sending--
				continue
			}
			some = true
			if c.Status == endpoint.Success && len(c.Octets) == datagram {
				e.ReceiveGeneral(now, (*[mad.Size]byte)(c.Octets[endpoint.GRHSize:]), addressOf(c))
			}
			_ = g.post(c.ID) // there was room for it before
		}
	}
	return some
}

// addressOf is where a datagram came from.
func addressOf(c *endpoint.Completion) mad.Address {
	a := mad.Address{LID: c.SLID, QP: c.SrcQP, SL: c.SL, PKey: c.PKey}
	if c.Global {
		a.GID = ib.GID(c.Octets[8:24]) // the source, in the route header before the datagram
	}
	return a
}
