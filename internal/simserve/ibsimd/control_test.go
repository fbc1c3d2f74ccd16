package ibsimd_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
)

func TestConnect(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{})
	for _, c := range []struct {
		host string
		isSM bool
		want string // the node, empty for a refusal
	}{
		{"", false, "one"},
		{"three", false, "three"},
		{"the switch", false, "sw"}, // a description
		{"nobody", false, ""},
		{"two", true, "two"},
		{"two", true, ""}, // there is a manager
		{"two", false, "two"},
	} {
		client := sockets(t, s.Name())
		kind, node := client.connect(c.host, c.isSM)
		if (kind == ctlConnect) != (c.want != "") || node != c.want {
			t.Errorf("connect at %q, SM %v: answer %d at %q, want %q", c.host, c.isSM, kind, node, c.want)
		}
		if kind == ctlConnect {
			client.alive2(c.want)
		}
	}
}

// alive2 checks that the client is at the node that it was told.
func (c *rawClient) alive2(node string) {
	c.Helper()
	r := c.query(directed(1, mad.MethodGet, smp.AttrNodeDescription, 0))
	if text := strings.TrimRight(string(r.mad[64:128]), "\x00"); !strings.Contains("host one, the switch, two, three", text) ||
		node == "sw" && text != "the switch" || node != "sw" && node != "one" && text != node {
		c.Errorf("at %q: description %q", node, text)
	}
}

func TestWhatTheControlSocketTells(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{})
	c := attach(t, s.Name(), "two")
	get := func(kind uint32, payload ...byte) []byte {
		t.Helper()
		got, answer := c.ask(kind, payload)
		if got != kind {
			t.Fatalf("request %d: answer %d", kind, got)
		}
		return answer
	}
	native := binary.NativeEndian
	if a := get(ctlGetPort); native.Uint16(a) != 0 || a[2] != byte(smp.PortInit) {
		t.Errorf("GET_PORT: % x", a[:4])
	}
	l := s.Topology()
	two := l.Nodes[2]
	if a := get(ctlGetVendor); native.Uint32(a) != two.VendorID || native.Uint32(a[4:]) != uint32(two.DeviceID) {
		t.Errorf("GET_VENDOR: % x", a[:24])
	}
	if a := get(ctlGetGUID); native.Uint64(a) != uint64(two.GUID) {
		t.Errorf("GET_GUID: % x", a[:8])
	}
	if a := get(ctlGetGID); binary.BigEndian.Uint64(a[8:]) != uint64(two.Ports[1].GUID) {
		t.Errorf("GET_GID: % x", a[:16])
	}
	var node smp.NodeInfo
	if err := node.UnmarshalBinary(get(ctlGetNodeInfo)); err != nil || node.NodeGUID != two.GUID || node.LocalPortNum != 1 ||
		node.PortGUID != two.Ports[1].GUID || node.NumPorts != 2 {
		t.Errorf("GET_NODEINFO: %+v, %v", node, err)
	}
	var port smp.PortInfo
	for _, n := range []byte{0, 1, 2} {
		if err := port.UnmarshalBinary(get(ctlGetPortInfo, n)); err != nil || port.LocalPortNum != 1 || port.PortState != smp.PortInit {
			t.Errorf("GET_PORTINFO of %d: %+v, %v", n, port, err)
		}
	}
	if kind, _ := c.ask(ctlGetPortInfo, []byte{3}); kind != ctlError {
		t.Errorf("GET_PORTINFO of port 3 of 2: answer %d", kind)
	}
	if a := get(ctlGetPKeys); binary.BigEndian.Uint16(a) != 0xFFFF || slices.Max(a[2:]) != 0 {
		t.Errorf("GET_PKEYS: % x", a)
	}
	// IsSM shows in the capability mask, and goes with the client.
	for _, on := range []byte{1, 0, 1} {
		get(ctlSetIsSM, on, 0, 0, 0)
		if err := port.UnmarshalBinary(get(ctlGetPortInfo, 0)); err != nil || port.CapabilityMask.Has(smp.CapIsSM) != (on != 0) {
			t.Errorf("after SET_ISSM %d: %v, %v", on, port.CapabilityMask, err)
		}
	}
	get(ctlDisconnect)
	if isSM(t, s, two.GUID) {
		t.Error("the manager has left, and the port still says that there is one")
	}
	if kind, _ := c.ask(ctlGetPort, nil); kind != ctlError {
		t.Errorf("after DISCONNECT: answer %d", kind)
	}
}

func isSM(t *testing.T, s *ibsimd.Server, g ib.NodeGUID) (is bool) {
	t.Helper()
	if err := s.Do(func(f *fabric.Fabric) { is = f.Agent(g).Port(1).CapabilityMask.Has(smp.CapIsSM) }); err != nil {
		t.Fatal(err)
	}
	return is
}

// What ibsim leaves unanswered, or dies of, is answered with an error.
func TestSenselessControlRequests(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{})
	other := attach(t, s.Name(), "")
	c := attach(t, s.Name(), "three")
	whole := func(change func(b []byte)) []byte {
		b := make([]byte, 80)
		binary.NativeEndian.PutUint32(b[0:], 0xDEADBEEF)
		binary.NativeEndian.PutUint32(b[4:], c.slot)
		binary.NativeEndian.PutUint32(b[8:], ctlGetPort)
		change(b)
		return b
	}
	for name, b := range map[string][]byte{
		"one byte":            {1},
		"79 bytes":            whole(func([]byte) {})[:79],
		"81 bytes":            append(whole(func([]byte) {}), 0),
		"wrong magic":         whole(func(b []byte) { b[0]++ }),
		"kind 0":              whole(func(b []byte) { b[8] = 0 }),
		"unknown kind":        whole(func(b []byte) { b[8] = 11 }),
		"huge kind":           whole(func(b []byte) { b[11] = 0xFF }),
		"client 11":           whole(func(b []byte) { b[4] = 11 }),
		"client -1":           whole(func(b []byte) { copy(b[4:], "\xff\xff\xff\xff") }),
		"never connected":     whole(func(b []byte) { b[4] = 9 }),
		"somebody else":       whole(func(b []byte) { b[4] = byte(other.slot) }),
		"somebody else leave": whole(func(b []byte) { b[4], b[8] = byte(other.slot), ctlDisconnect }),
		"somebody else IsSM":  whole(func(b []byte) { b[4], b[8], b[16] = byte(other.slot), ctlSetIsSM, 1 }),
	} {
		if kind, _ := c.askRaw(b); kind != ctlError {
			t.Errorf("%s: answer %d, want an error", name, kind)
		}
		other.alive()
	}
	// A connect request whose data socket is not there, or is another's.
	stranger := sockets(t, s.Name())
	for _, id := range []uint32{0, 4_000_000_000, other.id} {
		stranger.id = id
		if kind, _ := stranger.connect("", false); kind != ctlError {
			t.Errorf("connect with data socket %d: answer %d", id, kind)
		}
	}
	other.alive()
	c.alive()
}

// There is room for ten clients; those that died make room, at once when
// somebody asks for it and soon otherwise.
func TestPlaces(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{})
	var all []*rawClient
	for i := range 10 {
		all = append(all, attach(t, s.Name(), []string{"one", "two", "sw"}[i%3]))
	}
	if kind, _ := sockets(t, s.Name()).connect("", false); kind != ctlError {
		t.Fatalf("the eleventh client: answer %d", kind)
	}
	all[4].isSM(1)
	all[4].die() // at "two", as a manager
	all[7].die()
	time.Sleep(20 * time.Millisecond)
	a, b := attach(t, s.Name(), "two"), attach(t, s.Name(), "")
	a.alive()
	b.alive()
	if kind := a.isSM(1); kind != ctlSetIsSM {
		t.Errorf("a manager in place of one that died: answer %d", kind)
	}
	if kind, _ := sockets(t, s.Name()).connect("", false); kind != ctlError {
		t.Error("an eleventh client again")
	}
	a.die()
	waitFor(t, "a dead manager's bit goes away by itself", func() bool { return !isSM(t, s, s.Topology().Nodes[2].GUID) })
	// A client that begins again keeps one place only.
	for range 30 {
		if kind, _ := b.connect("three", false); kind != ctlConnect {
			t.Fatalf("connecting again: answer %d", kind)
		}
	}
	b.alive()
	for _, c := range all[:4] {
		c.alive()
	}
}

func TestNamesOfServers(t *testing.T) {
	everybody := door.Users{Any: true}
	s := serve(t, small(t), ibsimd.Config{})
	if _, err := ibsimd.Listen(small(t), ibsimd.Config{Socket: s.Name()}); err == nil || !strings.Contains(err.Error(), "another simulator") {
		t.Errorf("a second server of one name: %v", err)
	}
	for _, c := range []ibsimd.Config{
		{Socket: strings.Repeat("x", 81)}, {UDP: "localhost:7070", Users: everybody}, {UDP: "[::1]:7070", Users: everybody},
		{UDP: "127.0.0.1:0", Users: everybody}, {UDP: "127.0.0.1:65530", Users: everybody},
		{Socket: socketName(), Fabric: fabric.Config{Loss: 2}},
	} {
		if other, err := ibsimd.Listen(small(t), c); err == nil {
			other.Close()
			t.Errorf("%+v: no error", c)
		}
	}
	if env := s.Environment(); !slices.Equal(env, []string{"IBSIM_SOCKNAME=" + s.Name()}) {
		t.Error(env)
	}
	c := ibsimd.Config{UDP: "0.0.0.0:7171", Users: everybody}
	if other, err := ibsimd.Listen(small(t), c); err != nil {
		t.Error(err)
	} else if other.Close(); fmt.Sprint(other.Environment()) != "[IBSIM_SERVER_NAME=127.0.0.1 IBSIM_SERVER_PORT=7171]" {
		t.Error(other.Environment())
	}
}

// A server that is told to end before it has begun in earnest does so.
func TestServeEndsAtOnce(t *testing.T) {
	for range 200 {
		s, err := ibsimd.Listen(small(t), ibsimd.Config{Socket: socketName()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }()
		stop()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it ended: %v", err)
			}
		case <-time.After(answerWait):
			t.Fatal("it does not end")
		}
		s.Close()
	}
}
