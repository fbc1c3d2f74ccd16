package ibsimd_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// Commands make links spoil packets, ports send without credits and ports give none;
// the counters of the other end say so.
func TestConsoleTroublesLinks(t *testing.T) {
	d := newDesk(t)
	bytes, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, make([]byte, 4000))
	if err != nil {
		t.Fatal(err)
	}
	v.LRH.SetSLID(lidOne)
	v.LRH.SetDLID(lidThree)
	v.BTH.SetPKey(ib.PKeyDefaultFull)
	v.BTH.SetDestQP(2)
	if err := packet.Seal(bytes); err != nil {
		t.Fatal(err)
	}
	// sent is how many of so many packets from one were spoiled, and how many overran
	// the switch.
	sent := func(n int) (spoiled, overran uint64) {
		t.Helper()
		if err := d.server.Do(func(f *fabric.Fabric) {
			nodes := map[string]ib.NodeGUID{}
			for _, node := range d.server.Topology().Nodes {
				nodes[node.ID] = node.GUID
			}
			p := f.Counters(nodes["sw"]).Port(1)
			spoiled, overran = p.LocalPhysicalErrors, p.BufferOverrunErrors
			for range n {
				if err := f.Inject(nodes["one"], 1, bytes); err != nil {
					t.Error(err)
				}
			}
			f.AdvanceTo(f.Now() + 100*time.Microsecond)
			spoiled, overran = p.LocalPhysicalErrors-spoiled, p.BufferOverrunErrors-overran
		}); err != nil {
			t.Fatal(err)
		}
		return spoiled, overran
	}
	for _, x := range []struct {
		line             string
		packets          int
		spoiled, overran uint64
	}{
		{``, 8, 0, 0},
		{`Noise "one"[1] 100`, 8, 8, 0},
		{`noise "one"[1] 0`, 8, 0, 0},
		// Four fill its buffer. More would wait at the host, as long as its time lets them.
		{`Withhold "sw"[1] on`, 4, 0, 0},
		{`Reckless "one"[1] on`, 3, 0, 3},
		{`reckless "one"[1] off`, 0, 0, 0},
		{`withhold "sw"[1] off`, 8, 0, 0},
	} {
		d.do(x.line)
		if spoiled, overran := sent(x.packets); spoiled != x.spoiled || overran != x.overran {
			t.Errorf("%s: of %d packets %d were spoiled and %d overran; want %d and %d", x.line, x.packets, spoiled, overran, x.spoiled, x.overran)
		}
	}
}
