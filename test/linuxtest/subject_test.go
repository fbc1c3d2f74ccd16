//go:build linux

package linuxtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/guest"
	"github.com/ibwarden/ibwarden/internal/simserve/qib"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// The port that is asked, and the test at the other end of its cable.
const (
	nodeGUID ib.NodeGUID = 0x0011750000000101
	portLID  ib.LID      = 2
	ownLID   ib.LID      = 1 // also where the subnet manager is said to be
	ownQP    ib.QPN      = 0x123
	pairQKey ib.QKey     = 0x11111111 // of a UD queue pair, in ibv_ud_pingpong and so in ours
	pairPSN              = 0x100      // of the first packet to a queue pair
	pairMTU              = 1024
	pairSize             = 3000 // bytes of a message, in packets of pairMTU
)

// subject is a port that is asked.
type subject interface {
	// send puts a packet on the cable, LRH to VCRC.
	send(b []byte)
	// heard are the packets that came since, once all that was sent has been taken. With programs
	// it has run those programs too that had something to take.
	heard(programs bool) [][]byte
	// open makes a queue pair that answers each message by one of pairSize bytes, or pairMTU of a
	// datagram, and returns its number; close ends it.
	open(s endpoint.Service) ib.QPN
	close()
	// query is what a program in the host is told of its port.
	query() string
	// state is that of the port, as its host sees it: Down, Init, Armed or Active.
	state() string
	// restart switches the port off and on, as its driver does or the host.
	restart()
	// pause lets a little time pass.
	pause()
}

// simulated is our end node, at a cable of a simulated fabric.
type simulated struct {
	t     testing.TB
	f     *fabric.Fabric
	plug  *fabric.Plug
	qp    *endpoint.QP
	inbox [][]byte
}

const fabricOfTwo = "caguid=0x0002c90000000001\nCa\t1 \"peer\"\n[1] \"red-1\"[1]\n\n" +
	"caguid=0x0011750000000101(11750000000101)\nCa\t1 \"red-1\"\n[1] \"peer\"[1]\n"

func simulate(t testing.TB) *simulated {
	l, _, err := topology.Read([]byte(fabricOfTwo), "two", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range l.Nodes {
		n.Ports[1].GUID = ib.PortGUID(n.GUID) // as the adapter has it
	}
	c := fabric.DefaultConfig()
	c.Profile = asAdapter
	s := &simulated{t: t}
	if s.f, err = fabric.New(l, c); err != nil {
		t.Fatal(err)
	}
	if s.plug, err = s.f.Plug(l.Nodes[0].GUID, s); err != nil {
		t.Fatal(err)
	}
	s.plug.Poll(true, smp.LinkWidth1X|smp.LinkWidth4X, smp.LinkSpeedSDR)
	s.pause()
	return s
}

// asAdapter gives the host what the adapter can.
func asAdapter(n *topology.Node, c *sma.Config) {
	p := &c.Ports[0]
	c.PartitionCap, c.VendorID, c.DeviceID, c.Revision, c.SystemImageGUID = 4, 0x1175, 0x10, 0x40002, uint64(n.GUID)
	c.Options.PKeyTraps = true
	p.RespTimeValue = 3
	p.GUIDCap, p.VLCap, p.MTUCap, p.VLArbitrationHighCap, p.VLArbitrationLowCap = 5, 1, ib.MTU4096, 0, 0
	p.LinkWidthSupported, p.LinkSpeedSupported = smp.LinkWidth1X|smp.LinkWidth4X, smp.LinkSpeedSDR
	p.LinkWidthEnabled, p.LinkSpeedEnabled, p.LinkSpeedExtSupported, p.LinkSpeedExtSupported2 = 0, 0, 0, 0
	p.CapabilityMask &^= smp.CapExtendedSpeeds
}

func (s *simulated) LinkUp(sma.Link)  {}
func (s *simulated) LinkDown()        {}
func (s *simulated) Receive(b []byte) { s.inbox = append(s.inbox, bytes.Clone(b)) }

func (s *simulated) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *simulated) send(b []byte) { s.check(s.plug.Send(b)) }

func (s *simulated) heard(bool) [][]byte {
	s.f.AdvanceTo(s.f.Now() + time.Millisecond)
	for s.turn() {
		s.f.AdvanceTo(s.f.Now() + time.Millisecond)
	}
	all := s.inbox
	s.inbox = nil
	return all
}

// turn lets the program that has the queue pair answer, and reports whether it did.
func (s *simulated) turn() (some bool) {
	if s.qp == nil {
		return false
	}
	var done [32]endpoint.Completion
	for _, c := range done[:s.qp.Poll(done[:])] {
		if c.Op == endpoint.OpReceive && c.Status == endpoint.Success {
			s.answer()
			some = true
		}
	}
	return some
}

func (s *simulated) answer() {
	s.post()
	r := endpoint.SendRequest{Op: endpoint.OpSend, Data: make([]byte, pairSize)}
	if s.qp.Service() == endpoint.UD {
		r.Data = r.Data[:pairMTU]
		r.To, r.RemoteQP, r.RemoteQKey = endpoint.Address{DLID: ownLID}, ownQP, pairQKey
	}
	s.check(s.qp.PostSend(r))
}

func (s *simulated) post() {
	s.check(s.qp.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, endpoint.GRHSize+pairSize)}))
}

func (s *simulated) device() *endpoint.Device {
	d, err := s.f.Device(nodeGUID)
	s.check(err)
	return d
}

func (s *simulated) open(service endpoint.Service) ib.QPN {
	var err error
	s.qp, err = s.device().CreateQP(endpoint.Application, endpoint.QPConfig{Service: service})
	s.check(err)
	a := endpoint.Attr{
		Port: 1, QKey: pairQKey, Path: endpoint.Address{DLID: ownLID}, PathMTU: ib.MTU1024, Remote: uint32(ownQP),
		ReceivePSN: pairPSN, SendPSN: pairPSN, MinRNRTimer: 12, Timeout: 14, RetryCount: 7, RNRRetryCount: 7,
	}
	for i, mask := range masks[service] {
		s.check(s.qp.Modify(endpoint.Application, endpoint.StateInit+endpoint.State(i), mask, a))
	}
	for range 16 {
		s.post()
	}
	return s.qp.Number()
}

// masks are what a queue pair is given on its way to INIT, RTR and RTS.
var masks = map[endpoint.Service][3]endpoint.AttrMask{
	endpoint.UD: {toInit | endpoint.AttrQKey, 0, endpoint.AttrSendPSN},
	endpoint.UC: {toInit, toRTR, endpoint.AttrSendPSN},
	endpoint.RC: {toInit, toRTR | endpoint.AttrMinRNRTimer, endpoint.AttrSendPSN | endpoint.AttrTimeout | endpoint.AttrRetryCount | endpoint.AttrRNRRetryCount},
}

const (
	toInit = endpoint.AttrPort | endpoint.AttrPKeyIndex
	toRTR  = endpoint.AttrPath | endpoint.AttrPathMTU | endpoint.AttrRemote | endpoint.AttrReceivePSN
)

func (s *simulated) close() {
	s.qp.Destroy()
	s.qp = nil
}

// queried is what query begins with.
const queried = "pkey_tbl_len %d, bad_pkey_cntr %d, qkey_viol_cntr %d, P_Keys "

func (s *simulated) query() string {
	p, err := s.device().QueryPort(1)
	s.check(err)
	out := make([]string, p.PKeyTableLen)
	for i := range out {
		key, err := s.device().QueryPKey(1, i)
		s.check(err)
		out[i] = key.String()
	}
	return fmt.Sprintf(queried, p.PKeyTableLen, p.BadPKeyCounter, p.QKeyViolationCounter) + strings.Join(out, " ")
}

func (s *simulated) state() string { return s.f.Agent(nodeGUID).Port(1).PortState.String() }

func (s *simulated) restart() {
	s.check(s.f.Reboot(nodeGUID))
	s.pause()
	s.inbox = nil
}

func (s *simulated) pause() { s.f.AdvanceTo(s.f.Now() + 100*time.Millisecond) }

// linux is a Linux machine.
type linux struct {
	t       testing.TB
	m       *guest.Machine
	console need.Log
	mu      sync.Mutex
	// got is a change of what follows.
	got   chan struct{}
	inbox [][]byte
	// barrier is the transaction of the last Get that is answered when all before it has been taken. Each has another:
	// one that was sent again is answered twice.
	barrier uint64
}

// barrierBit is in the transactions of barriers and in no other.
const barrierBit = 1 << 62

func boot(t *testing.T) *linux {
	need.Need(t, guest.Missing())
	image, err := guest.MakeImage(t.Context(), nil)
	need.Need(t, err)
	s := &linux{t: t, got: make(chan struct{}, 1)}
	s.m, err = guest.Start(t.Context(), guest.Options{Name: "red-1", GUID: nodeGUID, Image: image, Wire: s, Console: &s.console})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.m.Stop()
		if t.Failed() {
			t.Logf("console: %s", s.console.String())
		}
	})
	s.m.SetPeer(qib.End{Polls: true, Width: smp.LinkWidth1X | smp.LinkWidth4X, Speed: smp.LinkSpeedSDR})
	if err := s.m.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.waitUp()
	return s
}

func (s *linux) Send(b []byte) {
	s.mu.Lock()
	s.inbox = append(s.inbox, b)
	s.mu.Unlock()
	select {
	case s.got <- struct{}{}:
	default:
	}
}
func (s *linux) SetLink(qib.End) {}

func (s *linux) send(b []byte) { s.m.Deliver(b) }

func (s *linux) heard(programs bool) [][]byte {
	all := s.past()
	if programs {
		s.shell("true")
		all = append(all, s.past()...)
	}
	return all
}

// past waits for the answer to a Get of NodeInfo, and is what came before it.
func (s *linux) past() [][]byte {
	s.t.Helper()
	m := directed(mad.MethodGet, smp.AttrNodeInfo, 0)
	// The driver refuses the version before it looks at the M_Key, so that no lease is ended by this.
	s.barrier++
	m.TransactionID, m.ClassVersion = barrierBit|s.barrier, 2
	end := time.Now().Add(need.Patience)
	for time.Now().Before(end) {
		s.send(wired(s.t, &m))
		wait := time.After(time.Second)
		for waiting := true; waiting; {
			select {
			case <-s.got:
			case <-wait:
				waiting = false // the link may be down
			}
			s.mu.Lock()
			all := s.inbox
			for i, b := range all {
				if a := answerIn(b); a != nil && a.TransactionID == m.TransactionID {
					s.inbox = nil
					s.mu.Unlock()
					return slices.DeleteFunc(slices.Delete(all, i, i+1), func(b []byte) bool {
						a := answerIn(b)
						return a != nil && a.TransactionID&barrierBit != 0
					})
				}
			}
			s.mu.Unlock()
		}
	}
	s.t.Fatal("the machine does not answer a Get of NodeInfo")
	return nil
}

// shell runs a script in the machine and returns what it prints.
func (s *linux) shell(script string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*need.Patience)
	defer cancel()
	var out need.Log
	if status, err := s.m.Shell(ctx, &out, &out, script); err != nil || status != 0 {
		s.t.Fatalf("%s: status %d, %v: %s", script, status, err, out.String())
	}
	return out.String()
}

// open runs a program that answers each message. It is told of its peer over TCP.
func (s *linux) open(service endpoint.Service) ib.QPN {
	name := map[endpoint.Service]string{endpoint.RC: "rc", endpoint.UC: "uc", endpoint.UD: "ud"}[service]
	size := pairSize
	options := fmt.Sprint(" -m ", pairMTU)
	if service == endpoint.UD {
		size, options = pairMTU, ""
	}
	script := fmt.Sprintf("ibv_%s_pingpong -e -n 1000000 -r 16 -s %d%s >/tmp/pair 2>&1 </dev/null & echo $! >/tmp/pid;"+
		"until netstat -ltn | grep -q :18515; do kill -0 $! || { cat /tmp/pair; exit 1; }; sleep 0.1; done;"+
		`{ printf '%04x:%06x:%06x:%032d\0done\0'; sleep 0.5; } | nc 127.0.0.1 18515`,
		name, size, options, uint16(ownLID), uint32(ownQP), pairPSN, 0)
	words := strings.Split(s.shell(script), ":")
	var n ib.QPN
	if len(words) < 3 {
		s.t.Fatalf("ibv_%s_pingpong says of itself: %q", name, words)
	}
	if _, err := fmt.Sscanf(words[1], "%x", &n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *linux) close() { s.shell("kill $(cat /tmp/pid); wait; true") }

func (s *linux) query() string {
	var n [3]int
	told := s.shell(`ibv_devinfo -v 2>/dev/null | awk '/pkey_tbl_len|bad_pkey_cntr|qkey_viol_cntr/ {print $1 " " $2}' | sort`)
	if _, err := fmt.Sscanf(told, "bad_pkey_cntr: %v\npkey_tbl_len: %v\nqkey_viol_cntr: %v\n", &n[0], &n[1], &n[2]); err != nil {
		s.t.Fatalf("ibv_devinfo: %q: %v", told, err)
	}
	return fmt.Sprintf(queried, n[1], n[0], n[2]) + strings.Join(strings.Fields(s.shell("cat /sys/class/infiniband/qib0/ports/1/pkeys/*")), " ")
}

func (s *linux) state() string {
	_, name, _ := strings.Cut(strings.TrimSpace(s.shell("cat /sys/class/infiniband/qib0/ports/1/state")), ": ")
	return map[string]string{"DOWN": "Down", "INIT": "Initialize", "ARMED": "Armed", "ACTIVE": "Active"}[name]
}

func (s *linux) restart() {
	s.shell("rmmod ib_ipoib 2>/dev/null; rmmod ib_qib && insmod /lib/modules/ib_qib.ko")
	s.waitUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inbox = nil
}

func (s *linux) waitUp() {
	need.Eventually(s.t, need.Patience, "the link is up", func() bool {
		return strings.Contains(s.shell("cat /sys/class/infiniband/qib0/ports/1/phys_state"), "LinkUp")
	})
}

func (s *linux) pause() { time.Sleep(100 * time.Millisecond) }

// answerIn is the management datagram for QP0 in a packet, nil when it has none.
func answerIn(b []byte) *mad.SMP {
	v, err := packet.Parse(b)
	if err != nil || v.BTH == nil || v.BTH.DestQP() != ib.QP0 {
		return nil
	}
	m := new(mad.SMP)
	if m.UnmarshalBinary(v.Payload) != nil {
		return nil
	}
	return m
}
