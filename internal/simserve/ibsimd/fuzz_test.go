package ibsimd

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// FuzzSockets gives a server arbitrary bytes on its control socket and from
// clients, a subnet manager among them, and holds it to its limits.
func FuzzSockets(f *testing.F) {
	request := make([]byte, controlSize)
	binary.NativeEndian.PutUint32(request, controlMagic)
	for kind := range byte(12) {
		request[8] = kind
		f.Add(append([]byte{0, 0}, request...))
	}
	packet := make([]byte, packetSize)
	for _, class := range []byte{0x01, 0x81, 0x03, 0x04, 0x07} {
		for _, method := range []byte{0x01, 0x02, 0x05, 0x07, 0x81} {
			copy(packet[offMAD:], []byte{1, class, 1, method, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0x15})
			copy(packet[offMAD+129:], []byte{1, 2})
			f.Add(append([]byte{1, class & 1}, packet...))
		}
	}
	l, err := topology.Generate("fattree,radix=4,levels=2")
	if err != nil {
		f.Fatal(err)
	}
	s, err := Listen(l, Config{Socket: fmt.Sprintf("ibsimd-fuzz-%d", os.Getpid()), Fabric: fabric.DefaultConfig()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Close)
	attach := func(id uint32, node string) *DgramAddress {
		from := Abstract(fmt.Sprintf("%s:ctl%d", s.Name(), id))
		data, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("@%s:in%d\x00", s.Name(), id)})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { data.Close() })
		var payload [payloadSize]byte
		binary.NativeEndian.PutUint32(payload[:], id)
		copy(payload[offConnectNode:], node)
		if !s.connect(&payload, &from) {
			f.Fatalf("client %d cannot connect", id)
		}
		return &from
	}
	from := []*DgramAddress{attach(1, l.Nodes[0].ID), attach(2, l.Nodes[1].ID)}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 2 {
			return
		}
		what, who, b := b[0]&1, b[1]&1, b[2:]
		switch what {
		case 0:
			var c control
			copy(c[:], b)
			s.obey(&c, from[who])
		case 1:
			if c := s.clientAt(from[who]); c != nil {
				var d datagram
				copy(d[:], b)
				s.fromClient(c, &d)
			}
		}
		s.hurry()
		s.counters.Settle()
		for _, from := range from {
			c := s.clientAt(from)
			if c == nil { // it has left
				continue
			}
			used := 0
			for i := range c.requests {
				if c.requests[i].state != unused {
					used++
				}
			}
			if used != c.waiting || used+len(c.free) != len(c.requests) || used > maxRequests || c.outbox.count > maxOutbox {
				t.Fatalf("%d requests in use, %d counted, %d free of %d; %d packets wait", used, c.waiting, len(c.free), len(c.requests), c.outbox.count)
			}
		}
		if s.fabric.InFlight() > 1<<12 {
			t.Fatalf("%d packets under way", s.fabric.InFlight())
		}
	})
}
