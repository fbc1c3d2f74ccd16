package ibsim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// TestControl: control requests as libumad2sim sends them, 80 bytes in the machine's own
// order, and what of an answer is read.
func TestControl(t *testing.T) {
	payload, err := connectPayload(4711, "leaf-1")
	if err != nil {
		t.Fatal(err)
	}
	b := control{client: 3, kind: controlConnect, payload: payload}.encode()
	order := binary.NativeEndian
	if len(b) != 80 || order.Uint32(b) != 0xDEADBEEF || order.Uint32(b[4:]) != 3 || order.Uint32(b[8:]) != 1 || order.Uint32(b[12:]) != 44 ||
		order.Uint32(b[16:]) != 4711 || string(b[28:35]) != "leaf-1\x00" {
		t.Errorf("%x", b)
	}
	back, err := decodeControl(b)
	if err != nil || back.client != 3 || back.kind != controlConnect {
		t.Errorf("%+v, %v", back, err)
	}
	if client, node := connected(back.payload); client != 4711 || node != "leaf-1" {
		t.Errorf("client %d at %q", client, node)
	}
	for _, size := range []int{0, 79, 81} {
		if _, err := decodeControl(make([]byte, size)); err == nil {
			t.Errorf("%d bytes are an answer", size)
		}
	}
	if _, err := connectPayload(1, strings.Repeat("x", 31)); err != nil {
		t.Error(err)
	}
	if _, err := connectPayload(1, strings.Repeat("x", 32)); err == nil {
		t.Error("a name without room for its closing zero was taken")
	}
}

// TestPacketHeader: the addresses of a packet, and how much of a general datagram has a
// meaning.
func TestPacketHeader(t *testing.T) {
	b := make([]byte, packetSize)
	for i := range b {
		b[i] = 0xEE // of the packet before
	}
	putPacketHeader(b, 5)
	if binary.BigEndian.Uint16(b) != 5 || packetSource(b) != 0 || packetStatus(b) != 0 || binary.BigEndian.Uint64(b[24:]) != 256 || b[packetHeader] != 0xEE {
		t.Errorf("to LID 5: %x", b[:packetHeader+1])
	}
	putPacketHeader(b, ib.LIDPermissive)
	if packetSource(b) != ib.LIDPermissive {
		t.Errorf("by a directed route: from LID %s", packetSource(b))
	}
	putQueuePairs(b, mad.Address{QP: 0x123456})
	if binary.BigEndian.Uint32(b[8:]) != 0x123456 || packetQueuePair(b) != ib.QP1 {
		t.Errorf("queue pairs %x", b[8:16])
	}
	binary.BigEndian.PutUint32(b[12:], 0xFF00_0002)
	if packetQueuePair(b) != 2 {
		t.Errorf("a queue pair of %#x, want its 24 bits", packetQueuePair(b))
	}
	for _, c := range []struct {
		kind  mad.RMPPType
		flags mad.RMPPFlags
		data  uint32
		want  uint64
	}{
		{mad.RMPPData, mad.RMPPActive | mad.RMPPLast, 100, 24 + 12 + 100},
		{mad.RMPPData, mad.RMPPActive, 100, 256},
		{mad.RMPPData, mad.RMPPActive | mad.RMPPLast, 10_000, 256},
		{mad.RMPPAck, mad.RMPPActive | mad.RMPPLast, 100, 256},
		{mad.RMPPData, 0, 100, 256},
	} {
		m := b[packetHeader:]
		m[24], m[25], m[26] = mad.RMPPVersion, byte(c.kind), byte(c.flags)
		binary.BigEndian.PutUint32(m[32:], c.data)
		putGeneralLength(b)
		if got := binary.BigEndian.Uint64(b[24:]); got != c.want {
			t.Errorf("%v, flags %v, %d bytes: length %d, want %d", c.kind, c.flags, c.data, got, c.want)
		}
	}
}

// TestEnvironment: the variables of libumad2sim and their defaults.
func TestEnvironment(t *testing.T) {
	lookup := func(vars map[string]string) Environment {
		return EnvironmentFrom(func(name string) string { return vars[name] })
	}
	if e := lookup(nil); e != (Environment{SockName: "sim", ServerPort: "7070"}) || e.place() != `"sim"` {
		t.Errorf("without variables: %+v at %s", e, e.place())
	}
	e := lookup(map[string]string{"IBSIM_SOCKNAME": "x", "IBSIM_SERVER_NAME": "::1", "IBSIM_SERVER_PORT": "99", "SIM_HOST": "leaf-1"})
	if e != (Environment{SockName: "x", ServerName: "::1", ServerPort: "99", Host: "leaf-1"}) || e.place() != "[::1]:99" {
		t.Errorf("%+v at %s", e, e.place())
	}
}

// TestDialNobody: where no simulator listens, the error says so and names the place.
func TestDialNobody(t *testing.T) {
	name := fmt.Sprintf("ibwarden-nobody-%d", os.Getpid())
	l, err := Dial(Environment{SockName: name})
	if err == nil {
		l.Close()
		t.Fatal("attached to nothing")
	}
	if !strings.Contains(err.Error(), name) || runtime.GOOS == "linux" && !errors.Is(err, ErrNoServer) {
		t.Errorf("%v", err)
	}
}
