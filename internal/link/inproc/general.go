package inproc

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// generalHops is the hop limit of what answers a datagram with a route header.
const generalHops = 0xFF

// general is queue pair 1 of the link's port. It is taken while a
// link.General is driven.
type general struct {
	fabric *fabric.Fabric
	node   ib.NodeGUID
	port   ib.PortNum
	pair   *endpoint.GSIPair
	out    [mad.Size]byte
}

// openGeneral takes the queue pair. It fails if the queue pair is in use.
func openGeneral(f *fabric.Fabric, node ib.NodeGUID, num ib.PortNum) (*general, error) {
	device, err := f.Device(node)
	if err != nil {
		return nil, err
	}
	pair, err := endpoint.OpenGSI(device, num)
	if err != nil {
		return nil, err
	}
	return &general{fabric: f, node: node, port: num, pair: pair}, nil
}

func (g *general) close() { g.pair.Close() }

// send sends what the engine has, and reports whether that was anything. What
// there is no room for waits with the engine.
func (g *general) send(e link.General) (some bool) {
	for !g.pair.Full() {
		to, ok := e.NextGeneral(g.fabric.Now(), &g.out)
		if !ok {
			return some
		}
		some = true
		index, ok := g.index(to.PKey)
		if !ok {
			continue // lost, as on a wire
		}
		// What is refused is lost, as on a wire.
		_ = g.pair.Send(&g.out, endpoint.SendRequest{
			RemoteQP: to.QP, PKeyIndex: index,
			To: endpoint.Address{DLID: to.LID, SL: to.SL, Global: to.GID != ib.GID{}, DGID: to.GID, HopLimit: generalHops},
		})
	}
	return some
}

// index is the place in the port's table of a key's partition; not ok when it is
// not there: no other key will do in its stead. An unknown key, 0, goes by the first.
func (g *general) index(key ib.PKey) (index uint16, ok bool) {
	if key == 0 {
		return 0, true
	}
	for i, k := range g.fabric.Agent(g.node).PKeys(g.port) {
		if k.IsValid() && k.Base() == key.Base() {
			return uint16(i), true
		}
	}
	return 0, false
}

// receive hands the engine what came in, and reports whether that was anything.
func (g *general) receive(now time.Duration, e link.General) (some bool) {
	g.pair.Receive(func(c *endpoint.Completion, m *[mad.Size]byte) {
		some = true
		e.ReceiveGeneral(now, m, addressOf(c))
	})
	return some
}

// addressOf is where a datagram came from.
func addressOf(c *endpoint.Completion) mad.Address {
	a := mad.Address{LID: c.SLID, QP: c.SrcQP, SL: c.SL, PKey: c.PKey}
	if c.Global {
		a.GID = ib.GID(c.Bytes[8:24]) // the source, in the route header before the datagram
	}
	return a
}
