package ibsimd

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
)

// takeControls answers control requests.
func (s *Server) takeControls() {
	n, _ := s.controls.Receive(s.control)
	unread := s.replies.unread(s.clients[:])
	for i := range n {
		d, from := s.controls.Datagram(i), &s.controls.Senders[i]
		// Who has no name cannot be answered. By UDP the sender may be forged,
		// and is not to get more than was sent.
		if !from.IsNamed() || s.names.udp && len(d) != controlSize || s.replies.isShunned(from) {
			s.refused++
			continue
		}
		var c control
		copy(c[:], d)
		if len(d) != controlSize || c.magic() != controlMagic || !s.admits(i) || !s.obey(&c, from) {
			s.refused++
			c.setKind(controlError)
		}
		if asking := s.clientAt(from); asking == nil {
			s.replies.refuse(&c, from, unread)
		} else if expelled := s.replies.answer(&c, asking, s.clients[:], unread); expelled != nil {
			s.forget(expelled)
		}
	}
	s.more = s.more || n == controlsPerTurn
}

// admits reports whether the user who sent the i-th control request may use the fabric. A
// data socket takes packets from the one socket alone that such a request has named.
func (s *Server) admits(i int) bool {
	uid, known := s.controls.User(i)
	if !known {
		uid = door.Unknown
	}
	return s.config.Users.Admit(uid) == nil
}

// clientAt is the client with this control socket, nil when there is none.
func (s *Server) clientAt(control *DgramAddress) *client {
	for _, c := range s.clients {
		if c != nil && c.control == *control {
			return c
		}
	}
	return nil
}

// obey turns a control request into its answer, and reports whether it could be
// done.
func (s *Server) obey(c *control, from *DgramAddress) bool {
	payload := c.payload()
	if c.kind() == controlConnect {
		return s.connect(payload, from)
	}
	id := c.client()
	if id >= maxClients || s.clients[id] == nil || s.clients[id].control != *from {
		return false // nobody, or not the one who connected
	}
	asking := s.clients[id]
	word := binary.NativeEndian.Uint32(payload[:])
	port := ib.PortNum(payload[0])
	*payload = [payloadSize]byte{}
	switch c.kind() {
	case controlDisconnect:
		s.forget(asking)
	case controlSetIsSM:
		binary.NativeEndian.PutUint32(payload[:], word)
		return s.setIsSM(asking, word != 0)
	case controlGetPortInfo:
		return s.portInfo(asking.place, port, payload)
	default:
		return s.describe(asking.place, c.kind(), payload)
	}
	return true
}

// describe tells of the node and port that a client is attached to.
func (s *Server) describe(p *place, what controlKind, payload *[payloadSize]byte) bool {
	agent := s.fabric.Agent(p.node.GUID)
	node, port := agent.NodeInfo(p.port), agent.Port(p.port)
	native := binary.NativeEndian
	switch what {
	case controlGetPort:
		native.PutUint16(payload[0:], uint16(port.LID))
		payload[2] = byte(port.PortState)
	case controlGetVendor:
		native.PutUint32(payload[0:], node.VendorID)
		native.PutUint32(payload[4:], uint32(node.DeviceID))
		native.PutUint32(payload[8:], node.Revision)
	case controlGetGID:
		gid := ib.MakeGID(port.GIDPrefix, node.PortGUID)
		copy(payload[:], gid[:])
	case controlGetGUID:
		native.PutUint64(payload[0:], uint64(node.NodeGUID))
	case controlGetNodeInfo:
		return node.Encode(payload) == nil
	case controlGetPKeys:
		keys := agent.PKeys(p.port)
		for i, key := range keys[:min(len(keys), keysInAnswer)] {
			binary.BigEndian.PutUint16(payload[2*i:], uint16(key))
		}
	default:
		return false
	}
	return true
}

// portInfo tells of a port of the client's node, the one that it is attached
// to for 0. The M_Key is not told.
func (s *Server) portInfo(p *place, n ib.PortNum, payload *[payloadSize]byte) bool {
	if n == 0 {
		n = p.port
	}
	port := s.fabric.Agent(p.node.GUID).Port(n)
	if port == nil {
		return false
	}
	info := *port
	info.MKey, info.LocalPortNum = 0, p.port
	return info.Encode(payload) == nil
}

// connect gives a client a place and tells it its number and its node.
func (s *Server) connect(payload *[payloadSize]byte, from *DgramAddress) bool {
	name := nodeName(payload)
	node, port, err := s.topology.Attach(name)
	if err != nil {
		return false
	}
	slot := s.slotFor(from)
	if slot < 0 {
		return false
	}
	data := s.names.in(from, binary.NativeEndian.Uint32(payload[offConnectID:]))
	if ConnectDgram(s.out[slot], data) != nil {
		return false // there is no such socket, or it is connected to another peer
	}
	if !s.drain(slot) {
		return false
	}
	c := &client{slot: slot, control: *from, data: data}
	if c.place, err = s.enter(end{node.GUID, port}); err != nil {
		return false
	}
	c.place.clients = append(c.place.clients, c)
	s.clients[slot] = c
	if binary.NativeEndian.Uint32(payload[offConnectIsSM:]) != 0 && !s.setIsSM(c, true) {
		s.forget(c)
		return false
	}
	binary.NativeEndian.PutUint32(payload[offConnectID:], uint32(slot))
	clear(payload[offConnectNode:])
	copy(payload[offConnectNode:offConnectNode+nodeNameSize-1], node.ID)
	return true
}

// slotFor finds a number for a client, -1 for none: the one that it has, when it
// begins again.
func (s *Server) slotFor(from *DgramAddress) int {
	if c := s.clientAt(from); c != nil {
		s.forget(c)
		return c.slot
	}
	free := func() int { return slices.Index(s.clients[:], nil) }
	if free() < 0 && time.Since(s.origin) >= s.deathAt-deathPeriod+expiryPeriod {
		s.bury()
	}
	return free()
}

// drain throws away what a data socket holds that did not come from the client
// it now belongs to, which is to send nothing yet.
func (s *Server) drain(slot int) (empty bool) {
	for range 16 {
		if n, _ := s.packets.Receive(s.out[slot]); n == 0 {
			return true
		}
	}
	return false
}

// enter finds the place at an end port, or attaches there.
func (s *Server) enter(at end) (*place, error) {
	for _, p := range s.places {
		if p.end() == at {
			return p, nil
		}
	}
	a, err := s.fabric.Attach(at.node, at.port)
	if err != nil {
		return nil, err
	}
	p := &place{node: s.counters.Node(at.node), port: at.port, attachment: a, came: make(map[origin]uint16)}
	device, err := s.fabric.Device(at.node)
	if err == nil {
		p.gsi, err = endpoint.OpenGSI(device, at.port)
	}
	if err != nil {
		a.Detach()
		return nil, err
	}
	s.places = append(s.places, p)
	return p, nil
}

// setIsSM notes that a client is, or no longer is, a subnet manager. There is
// room for one at a place.
func (s *Server) setIsSM(c *client, on bool) bool {
	if m := c.place.manager(); on && m != nil && m != c {
		return false
	}
	if c.isSM != on {
		c.isSM = on
		c.place.attachment.SetIsSM(on)
	}
	return true
}

// forget takes a client's place away.
func (s *Server) forget(c *client) {
	s.setIsSM(c, false)
	s.clients[c.slot] = nil
	p := c.place
	if p.clients = slices.DeleteFunc(p.clients, func(o *client) bool { return o == c }); len(p.clients) == 0 {
		p.attachment.Detach()
		p.gsi.Close()
		s.places = slices.DeleteFunc(s.places, func(o *place) bool { return o == p })
	}
	for _, o := range s.clients {
		if o == nil {
			continue
		}
		for i := range o.requests {
			if r := &o.requests[i]; r.state == atPeer && r.peer == c {
				s.giveUp(o, tagOf(o.slot, uint16(i)))
			}
		}
	}
}

// bury forgets the clients whose sockets are no more.
func (s *Server) bury() {
	s.deathAt = time.Since(s.origin) + deathPeriod
	for _, c := range s.clients {
		if c != nil && !DgramAnswers(c.data) {
			s.forget(c)
		}
	}
}
