package sweep

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// shuffled runs a discovery over a fake subnet whose answers come in an order of
// chance, and returns the GUIDs of the nodes in their order.
func shuffled(t *testing.T, r *rand.Rand, at answers) string {
	t.Helper()
	w := transact.NewWindow(transact.DefaultLimits())
	d := Discover(w, Options{})
	var waiting []mad.SMP
	for now := time.Duration(0); !w.Idle() || !d.Advance(); now += time.Microsecond {
		for p := (mad.SMP{}); w.Next(now, &p); {
			waiting = append(waiting, p)
		}
		if len(waiting) == 0 {
			t.Fatal("the discovery waits for nothing")
		}
		i := r.IntN(len(waiting))
		p := waiting[i]
		waiting = append(waiting[:i], waiting[i+1:]...)
		route := make([]string, p.HopCount)
		for i := range route {
			route[i] = fmt.Sprint(p.InitialPath[i+1])
		}
		attribute, status, ok := at(strings.Join(route, ","), &p)
		if !ok {
			t.Fatalf("%v was asked for %v", route, p.AttributeID)
		}
		if attribute != nil {
			if err := attribute.Encode(&p.Data); err != nil {
				t.Fatal(err)
			}
		}
		p.MakeResponse(status)
		w.Receive(now, &p)
	}
	d.Fabric().OrderFromManager()
	var out []string
	for i, n := range d.Fabric().Nodes {
		if n.Index != i {
			t.Errorf("%s has index %d, want %d", n.GUID(), n.Index, i)
		}
		out = append(out, fmt.Sprintf("%x", uint64(n.GUID())))
	}
	return strings.Join(out, " ")
}

// TestOrderOfNodes: OrderFromManager puts nodes into one order, whichever answer
// came first. What plan prints goes by it.
func TestOrderOfNodes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	// The manager, 1, is at a switch, 50, with switches 60 and 70 at its ports 3 and
	// 2, which are cabled to each other too, and have hosts.
	there := map[string]smp.NodeInfo{}
	switches := map[ib.NodeGUID][]ib.NodeGUID{0x50: {1, 0x70, 0x60}, 0x60: {0x50, 0x2f, 0x70, 0x20}, 0x70: {0x50, 0x60, 0x3f, 0x30}}
	var lay func(at ib.NodeGUID, route []string, from ib.NodeGUID)
	lay = func(at ib.NodeGUID, route []string, from ib.NodeGUID) {
		name := strings.Join(route, ",")
		behind, isSwitch := switches[at]
		if !isSwitch {
			there[name] = hostInfo(at)
			return
		}
		local := ib.PortNum(0)
		for i, peer := range behind {
			if peer == from {
				local = ib.PortNum(i + 1)
			}
		}
		there[name] = switchInfo(at, uint8(len(behind)), local)
		for i, peer := range behind {
			if len(route) < 5 && peer != 1 {
				lay(peer, append(route[:len(route):len(route)], fmt.Sprint(i+1)), at)
			}
		}
	}
	lay(0x50, []string{"1"}, 1)
	const want = "1 50 70 60 3f 30 2f 20"
	fabric := host(0, nil, device(there))
	for i := range uint64(50) {
		got := shuffled(t, rand.New(rand.NewPCG(seed, i)), func(route string, p *mad.SMP) (smp.Attribute, mad.Status, bool) {
			if a, status, ok := fabric(route, p); ok {
				return a, status, ok
			}
			return nil, mad.StatusInvalidField, true
		})
		if got != want {
			t.Fatalf("nodes stand as %s, want %s", got, want)
		}
	}
}
