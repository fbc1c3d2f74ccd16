package ibsimd_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/test/need"
)

// Requests for blocks and ports that do not exist, which end ibsim, are
// answered.
func TestPlacesThatDoNotExist(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	c := attach(t, s.Name(), "one")
	for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
		for _, attribute := range []mad.AttributeID{
			smp.AttrPKeyTable, smp.AttrSLToVLMappingTable, smp.AttrVLArbitrationTable, smp.AttrLinearForwardingTable,
			smp.AttrMulticastForwardingTable, smp.AttrPortInfo, smp.AttrGUIDInfo, smp.AttrNodeInfo, smp.AttrSwitchInfo, 0xFF90,
		} {
			for _, modifier := range []uint32{
				100 << 16, 100 << 8, 20000 << 16, 480, 767, 768, 0xFFFF, 0xFFFF_FFFF, 0x8000_0000, 5, 0x0500_0000, 0x0001_0000,
			} {
				for _, path := range [][]byte{{}, {1}, {1, 2}} {
					d := directed(3, method, attribute, modifier, path...)
					if method == mad.MethodSet && attribute != smp.AttrPortInfo { // or all ends with an M_Key
						for i := range 64 {
							d.mad[64+i] = 0xFF
						}
					}
					if r := c.query(d); r.status != 0 || r.mad[3] != 0x81 {
						t.Errorf("%v of 0x%04x, modifier 0x%x at %v: %+v", method, attribute, modifier, path, r)
					}
				}
			}
		}
	}
	// A LID as high as LIDs go, on an active port.
	info := smp.PortInfo{LID: 0xBFFF, MasterSMLID: lidOne}
	d := directed(4, mad.MethodSet, smp.AttrPortInfo, 0)
	if err := info.Encode((*[64]byte)(d.mad[64:])); err != nil {
		t.Fatal(err)
	}
	c.query(d)
	c.alive()
}

// Datagrams of a wrong size, and those of strangers, change nothing.
func TestForeignDatagrams(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{})
	// A stranger fills a place that nobody has yet, as far as he can.
	stranger, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	d := nodeInfo(0xBAD)
	for range 10 {
		stranger.SetWriteDeadline(time.Now().Add(silenceWait))
		if _, err := stranger.WriteTo(d.bytes(), abstract(s.Name(), "out0")); err != nil {
			break
		}
	}
	c := attach(t, s.Name(), "")
	if c.slot != 0 {
		t.Fatalf("slot %d", c.slot)
	}
	if r := c.receive(silenceWait); r != nil {
		t.Fatalf("an answer to a stranger's question: %+v", r)
	}
	if _, err := stranger.WriteTo(d.bytes(), abstract(s.Name(), "out0")); err == nil {
		t.Error("a stranger can speak for a client")
	}
	good := nodeInfo(1)
	for _, b := range [][]byte{{}, {0}, good.bytes()[:287], append(good.bytes(), 0), make([]byte, 5000)} {
		if _, err := c.data.Write(b); err != nil {
			t.Fatal(err)
		}
		if r := c.receive(silenceWait / 3); r != nil {
			t.Errorf("%d bytes: %+v", len(b), r)
		}
	}
	c.alive()
	// A sender without a name cannot be answered, and is not.
	nameless, err := net.DialUnix("unixgram", nil, abstract(s.Name(), "ctl"))
	if err != nil {
		t.Fatal(err)
	}
	defer nameless.Close()
	for range 100 {
		if _, err := nameless.Write(make([]byte, 80)); err != nil {
			t.Fatal(err)
		}
	}
	c.alive()
}

// flood sends as fast as it can, without ever reading, until stop; it returns
// how much that was.
func flood(t *testing.T, c *rawClient, d func(i int) []byte, stop *atomic.Bool) <-chan int {
	done := make(chan int, 1)
	go func() {
		sent := 0
		defer func() { done <- sent }()
		for ; !stop.Load(); sent++ {
			c.data.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := c.data.Write(d(sent)); err != nil {
				t.Errorf("the server has stopped reading after %d: %v", sent, err)
				return
			}
		}
	}()
	return done
}

// Clients that send without reading get neither the server nor other clients
// into trouble.
func TestFlood(t *testing.T) {
	need.Long(t, "programs that wait for their time-outs")
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	manager := attach(t, s.Name(), "two")
	manager.isSM(1) // and reads nothing
	c := attach(t, s.Name(), "one")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var stop atomic.Bool
	rng := rand.New(rand.NewPCG(1, 1))
	answered, bounced, to, random := nodeInfo(1, 1), nodeInfo(2, 1, 4, 4), general(3, mad.ClassSubnAdm, mad.MethodGet, 0x35, lidTwo), make([]byte, 288)
	all := []<-chan int{
		flood(t, attach(t, s.Name(), "one"), func(int) []byte { return answered.bytes() }, &stop),
		flood(t, attach(t, s.Name(), "three"), func(int) []byte { return bounced.bytes() }, &stop),
		flood(t, attach(t, s.Name(), "three"), func(i int) []byte {
			binary.BigEndian.PutUint64(to.mad[8:], uint64(i))
			return to.bytes()
		}, &stop),
		flood(t, attach(t, s.Name(), "sw"), func(int) []byte {
			for i := range random {
				random[i] = byte(rng.Uint32())
			}
			random[33] = []byte{0x81, 1, 3, 4, byte(rng.Uint32())}[rng.IntN(5)]
			return random
		}, &stop),
	}
	begin := time.Now()
	const questions = 200
	for i := range uint64(questions) {
		if r := c.query(nodeInfo(i, 1)); r.status != 0 {
			t.Fatalf("question %d came back", i)
		}
	}
	took := time.Since(begin)
	for time.Since(begin) < time.Second {
		c.alive()
	}
	stop.Store(true)
	sent := 0
	for _, done := range all {
		sent += <-done
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	t.Logf("%d packets of a flood; %d questions in %v", sent, questions, took)
}

// A flood of control requests from somebody who reads no answers does no harm,
// be he a client or not.
func TestControlFlood(t *testing.T) {
	for name, connected := range map[string]bool{"stranger": false, "client": true} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
			c, flooder := attach(t, s.Name(), "one"), sockets(t, s.Name())
			if connected {
				flooder = attach(t, s.Name(), "one")
			}
			request := make([]byte, 80)
			binary.NativeEndian.PutUint32(request, 0xDEADBEEF)
			binary.NativeEndian.PutUint32(request[4:], flooder.slot)
			request[8] = ctlGetPort
			var sent atomic.Int64
			var stop atomic.Bool
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for flooder.ctl.SetDeadline(time.Now().Add(answerWait)); !stop.Load(); sent.Add(1) {
					flooder.ctl.Write(request)
				}
			}()
			const many = 30_000 // no buffer has room for so many answers
			for asked := 0; asked < 100 || sent.Load() < many; asked++ {
				c.alive()
				if kind, _ := c.ask(ctlGetPort, nil); kind != ctlGetPort {
					t.Fatalf("GET_PORT: answer %d", kind)
				}
			}
			stop.Store(true)
			<-ended
			attach(t, s.Name(), "three").alive()
		})
	}
}

// A storm of traps that nobody represses, on a fabric that was told to send one
// every four microseconds, leaves time for clients.
func TestTrapStorm(t *testing.T) {
	s := serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	bringUp(t, s)
	manager, c := attach(t, s.Name(), "one"), attach(t, s.Name(), "three")
	manager.isSM(1)
	info := smp.PortInfo{LID: lidSwitch, MasterSMLID: lidOne, SubnetTimeOut: 0}
	d := directed(4, mad.MethodSet, smp.AttrPortInfo, 0, 1)
	if err := info.Encode((*[64]byte)(d.mad[64:])); err != nil {
		t.Fatal(err)
	}
	manager.query(d)
	if err := s.Do(func(f *fabric.Fabric) {
		if err := f.Unlink(s.Topology().Nodes[1].GUID, 2); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		c.alive()
	}
	traps := 0
	for manager.receive(silenceWait) != nil && traps < 1000 {
		traps++
	}
	if traps < 1000 {
		t.Errorf("%d traps: this was no storm", traps)
	}
}
