package apply

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// TestWritesTakeLittleMemory: what goes along with a write is used again for another, so that a block of a
// forwarding table, of which there are hundreds of thousands, takes few allocations.
func TestWritesTakeLittleMemory(t *testing.T) {
	const blocks, most = 600, 2
	b := subnettest.New()
	b.SwitchInfo.LinearFDBCap = uint16(ib.LIDUnicastMax)
	s := b.Switch(4, "s")
	b.Host(s, "host")
	b.Route()
	want := observed.NewDesired(b.Fabric)
	to := ib.PortNum(2)
	now := time.Duration(0)
	written := 0
	each := testing.AllocsPerRun(4, func() {
		want.Nodes[s.Index].LFT = slices.Repeat([]ib.PortNum{to}, blocks*64)
		to ^= 1
		w := transact.NewWindow(transact.DefaultLimits())
		r := Start(w, plan.DiffForwarding(b.Fabric, want, b.Fabric.Switches()), 128)
		for p := (mad.SMP{}); !r.Advance(); {
			for ; w.Next(now, &p); now += time.Microsecond {
				p.MakeResponse(mad.StatusOK)
				w.Receive(now, &p)
			}
		}
		if written += r.Writes(); len(r.Failures()) > 0 {
			t.Fatal(r.Failures()[0])
		}
	}) / blocks
	if written < 5*blocks || each > most {
		t.Errorf("%d writes, %.2f allocations for each, want %d at most", written, each, most)
	}
	t.Logf("%.2f allocations for each write", each)
}
