//go:build linux

package linuxtest

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/simserve/qib"
	"github.com/ibwarden/ibwarden/test/need"
)

// What a sequence has.
const (
	sequences  = 1000
	burstMax   = 40  // requests at once
	calmBurst  = 16  // requests to each agent that must all be answered
	overBurst  = 600 // requests of which the adapter, with 256 buffers, has no room for all
	workOf     = 25  // one in so many sequences loads the driver again, and one resets the slot
	overflowOf = 25  // one in so many has overBurst
)

// weather is what happens to a Linux machine's adapter.
type weather struct {
	*asked
	*linux
	r     *rand.Rand
	story []string
	work  sync.WaitGroup // what runs in the machine meanwhile
	// failed is its error: the machine has ended.
	failed error
}

// TestSequences: in random sequences a machine's cable is pulled and put back, the other end has no room,
// its rings are full, the cable spoils packets, its driver is unloaded and loaded, its slot is reset, several of these at
// once. After each sequence the kernel answers every request that its adapter has room for.
func TestSequences(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set") // it takes many minutes
	}
	s := boot(t)
	seed := need.Seed(t, 1)
	begun := time.Now()
	var w *weather
	n := 0
	defer func() {
		if t.Failed() {
			s.m.Adapter(func(a *qib.Adapter) {
				t.Logf("sequence %d: %s\nthe port is %v, was down %d times", n, strings.Join(w.story, "; "), a.State(), a.Counter(qib.LinkDowned))
			})
		}
	}()
	for ; n < sequences; n++ {
		w = &weather{asked: &asked{TB: t, subject: s, tid: uint64(n) << 20}, linux: s, r: rand.New(rand.NewPCG(seed, uint64(n)))}
		w.rage()
		if w.crashed() {
			t.Logf("sequence %d: the driver's timer has ended the machine", n)
			s = boot(t)
			continue
		}
		w.calm()
		if n%100 == 99 {
			t.Logf("%d sequences, %v", n+1, time.Since(begun).Round(time.Second))
		}
		if t.Failed() {
			t.Fatal(s.shell("dmesg | tail -30"))
		}
	}
	if log := s.shell("dmesg"); strings.Contains(log, "BUG:") || strings.Contains(log, "Oops") || strings.Contains(log, "blocked for more than") {
		t.Errorf("the kernel's log: %s", log)
	}
}

func (w *weather) did(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// rage is a sequence.
func (w *weather) rage() {
	// The driver's own chip_reset is of no use: it frees its interrupt, and does not ask for it again.
	reset := ""
	switch w.r.IntN(workOf) {
	case 0:
		reset = "echo 1 >/sys/bus/pci/devices/0000:01:00.0/reset && "
		fallthrough
	case 1:
		w.did("driver %s", reset)
		w.work.Go(func() {
			_, w.failed = w.m.Exec(w.Context(), io.Discard, io.Discard, "sh", "-c", "rmmod ib_ipoib; rmmod ib_qib && "+reset+"insmod /lib/modules/ib_qib.ko; sleep "+timerSeconds)
		})
	}
	if w.r.IntN(overflowOf) == 0 {
		w.burst(ib.QP1, overBurst)
	}
	for range 5 + w.r.IntN(10) {
		switch w.r.IntN(10) {
		case 0:
			pulled := w.r.IntN(2) == 0
			w.did("pulled %v", pulled)
			w.cable(!pulled)
		case 1:
			ready := w.r.IntN(2) == 0
			w.did("room %v", ready)
			w.m.SetReady(ready)
		case 2:
			c := []qib.Counter{qib.SymbolError, qib.LinkRecovery, qib.LinkProblem, qib.RxEBP, qib.RxLPCRC, qib.RxBufOvfl}[w.r.IntN(6)]
			w.did("error %#x", c)
			w.m.LinkError(c)
		case 3, 4:
			w.burst(ib.QP0, 1+w.r.IntN(burstMax))
		case 5, 6:
			w.burst(ib.QP1, 1+w.r.IntN(burstMax))
		case 7:
			w.spoilt(1 + w.r.IntN(50))
		case 8:
			state := []smp.PortState{smp.PortArmed, smp.PortActive}[w.r.IntN(2)]
			w.did("to %v", state)
			i := smp.PortInfo{LID: portLID, MasterSMLID: ownLID, NeighborMTU: ib.MTU2048, OperationalVLs: 1, PortState: state}
			m := data(directed(mad.MethodSet, smp.AttrPortInfo, 0), &i)
			w.send(wired(w, &m))
		case 9:
			time.Sleep(time.Duration(w.r.IntN(30)) * time.Millisecond)
		}
	}
}

// timerSeconds is how long after the driver is unloaded its timer may strike.
const timerSeconds = "3"

// crashed waits for what runs in the machine, and reports whether a defect of the driver has ended it: when it is
// unloaded, the timer of its samples of counters (pma_6120_timer) stays, and reads registers, or is code, that are
// not there any more, unless the driver is loaded again at the same place.
func (w *weather) crashed() bool {
	w.m.SetReady(true) // a driver that is unloaded waits for what it has to send
	w.cable(true)
	w.work.Wait()
	if w.failed == nil {
		return false
	}
	if !strings.Contains(w.console.String(), "__run_timers") {
		w.Fatal(w.failed)
	}
	return true
}

func (w *weather) cable(plugged bool) {
	end := qib.End{}
	if plugged {
		end = qib.End{Polls: true, Width: smp.LinkWidth1X | smp.LinkWidth4X, Speed: smp.LinkSpeedSDR}
	}
	w.m.SetPeer(end)
}

// burst sends requests to the agent behind QP0 or QP1.
func (w *weather) burst(to ib.QPN, n int) {
	w.did("%d to QP%d", n, to)
	for range n {
		w.tid++
		w.send(w.request(to))
	}
}

func (w *weather) request(to ib.QPN) []byte {
	if to == ib.QP0 {
		m := directed(mad.MethodGet, smp.AttrNodeInfo, 0)
		m.TransactionID = w.tid
		return wired(w, &m)
	}
	m := make([]byte, mad.Size)
	copy(m, []byte{1, byte(mad.ClassPerfMgt), 1, byte(mad.MethodGet), 17: 0x12, 65: 1})
	binary.BigEndian.PutUint64(m[8:], w.tid)
	return w.packed(packet.OpCodeUDSendOnly, ib.QP1, ib.PKeyDefaultFull, m, keyed(ib.QKeyGSI))
}

// spoilt sends packets that nobody takes: spoilt on the way, of all services, for another P_Key.
func (w *weather) spoilt(n int) {
	w.did("%d spoilt", n)
	for range n {
		op := packet.MakeOpCode(packet.Transport(w.r.IntN(4)), packet.Operation(w.r.IntN(24)))
		b, v, err := packet.Append(nil, op, w.r.IntN(2) == 0, make([]byte, 4*w.r.IntN(pairMTU/4)))
		if err != nil {
			continue // there is no such operation
		}
		v.LRH.SetDLID(portLID)
		v.BTH.SetPKey([]ib.PKey{ib.PKeyDefaultFull, 0x8001}[w.r.IntN(2)])
		if w.r.IntN(2) == 0 {
			b[w.r.IntN(len(b))] ^= byte(1 << w.r.IntN(8))
		}
		if w.r.IntN(2) == 0 && packet.Seal(b) != nil {
			continue
		}
		w.send(b)
	}
}

// calm has all be well again, after which nothing may be lost.
func (w *weather) calm() {
	w.Helper()
	need.Eventually(w, need.Patience, "the link is up", func() (up bool) {
		w.m.Adapter(func(a *qib.Adapter) { up = a.State() != smp.PortDown })
		return up
	})
	w.reset()
	first := w.tid + 1
	w.burst(ib.QP0, calmBurst)
	w.burst(ib.QP1, calmBurst)
	w.answered(first, func() int { return 0 })
	if w.r.IntN(overflowOf) == 0 {
		before := w.missed()
		first = w.tid + 1
		w.burst(ib.QP0, overBurst)
		w.answered(first, func() int { return w.missed() - before })
	}
}

// answered waits until all requests since the first have been answered, but for those that were missed.
func (w *weather) answered(first uint64, missed func() int) {
	w.Helper()
	open := map[uint64]bool{}
	for tid := first; tid <= w.tid; tid++ {
		open[tid] = true
	}
	end := time.Now().Add(need.Patience)
	for lost := len(open); lost != missed(); lost = len(open) {
		if time.Now().After(end) {
			w.Errorf("%d of %d requests were not answered, and %d missed", lost, w.tid-first+1, missed())
			return
		}
		w.mu.Lock()
		for _, b := range w.inbox {
			if v, err := packet.Parse(b); err == nil && v.DETH != nil && len(v.Payload) == mad.Size && mad.Method(v.Payload[mad.OffsetMethod]).IsResponse() {
				delete(open, binary.BigEndian.Uint64(v.Payload[mad.OffsetTransactionID:]))
			}
		}
		w.inbox = nil
		w.mu.Unlock()
		w.wait()
	}
}

// wait waits a little, or until something comes.
func (w *weather) wait() {
	select {
	case <-w.got:
	case <-time.After(100 * time.Millisecond):
	}
}

// missed is how many packets the adapter had no room for, or its driver for subnet management.
func (w *weather) missed() int {
	var n uint64
	w.m.Adapter(func(a *qib.Adapter) { n = a.Counter(qib.RingOverflow) + a.Counter(qib.RxDropped) })
	var dropped uint64
	if _, err := fmt.Sscan(w.shell("cat /sys/class/infiniband/qib0/ports/1/counters/VL15_dropped"), &dropped); err != nil {
		w.Fatal(err)
	}
	return int(n + dropped)
}
