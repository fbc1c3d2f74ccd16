package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

// stillFor is how long nothing arrives before it is said that nothing moves: a hundred times
// what the datagrams in the queue of a host take on its link.
const stillFor = 20 * time.Millisecond

// stuck lets all hosts send, until nothing moves any more, and tells how many datagrams wait
// for room that never comes.
func (l *load) stuck() (waiting, posted int) {
	l.t.Helper()
	start := l.fabric.Now()
	for i, h := range l.hosts {
		posted += len(h.to)
		l.fabric.At(start+h.every*time.Duration(i)/time.Duration(len(l.hosts)), func() { l.turn(h) })
	}
	arrived, last := 0, start
	for l.fabric.Now() < last+stillFor {
		l.fabric.At(l.fabric.Now()+stillFor/10, func() {}) // time passes where nothing happens
		for range loadDepth {
			l.fabric.Step()
		}
		now := 0
		for _, h := range l.hosts {
			l.poll(h)
			now += h.received
		}
		if l.besides != nil {
			now += l.besides()
		}
		if now > arrived {
			arrived, last = now, l.fabric.Now()
		}
		if now == posted+l.wanted {
			break
		}
	}
	return l.fabric.DataInFlight(), posted
}

// Under full load with real credits, and with no limit on how long a packet may wait, none
// waits for ever where the engine says that its routes cannot deadlock: on the virtual lanes
// that the path records name.
func TestNoPacketWaitsForEver(t *testing.T) {
	forever := policy.DefaultSettings()
	forever.LifeTimeValue, forever.HOQLife, forever.LeafHOQLife = 31, 31, 31
	for _, c := range []struct {
		engine    routing.Engine
		spec      string
		deadlocks bool
		long      bool
	}{
		{routing.MinHop, "torus,x=5,y=5,hosts=3", true, false}, // the test can fail
		{routing.UpDown, "torus,x=5,y=5,hosts=3", false, true},
		{routing.DOR, "torus,x=5,y=5,hosts=3", false, false},
		{routing.DFSSSP, "torus,x=5,y=5,hosts=3", false, true},
		{routing.DFSSSP, "random,switches=12,hosts=36,seed=3", false, false},
		{routing.FatTree, "fattree,radix=8,levels=3", false, true},
		{routing.Auto, "torus,x=6,y=5,hosts=2", false, true},
		{routing.Dragonfly, "dragonfly,groups=6,leafs=3,spines=2,hosts=3", false, true},
		{routing.DFSSSP, "dragonfly,groups=6,leafs=3,spines=2,hosts=3", false, true},
	} {
		t.Run(fmt.Sprintf("%s on %s", c.engine, c.spec), func(t *testing.T) {
			if c.long {
				need.Long(t, "a fabric under full load; a share: the other engines and fabrics")
			}
			w := bringUp(t, setup{
				list:    generate(t, c.spec),
				policy:  &policy.Policy{Default: policy.Full, Settings: &forever},
				manager: engine.Config{Routing: c.engine},
				fabric:  fabric.Config{Profile: slow, WireTime: true},
			})
			w.mum = true
			subnet, ok := w.engine.Subnet()
			if !ok {
				t.Fatal("no policy stands")
			}
			ends := map[place]*observed.Port{}
			for _, p := range subnet.Fabric.EndPorts() {
				ends[place{p.Node.GUID(), p.Num}] = p
			}
			l := newLoad(w, 100)
			lanes := map[ib.SL]bool{}
			l.paths = func(from, to place) ib.SL {
				sl := subnet.Levels.Between(0, ends[from], ends[to])
				lanes[sl] = true
				return sl
			}
			l.allToAll(len(l.hosts)-1, 2)
			waiting, posted := l.stuck()
			arrived := 0
			for _, h := range l.hosts {
				l.poll(h)
				arrived += h.received
			}
			t.Logf("%d hosts, %d service levels: %d of %d datagrams arrived, %d wait for ever", len(l.hosts), len(lanes), arrived, posted, waiting)
			if deadlocked := waiting > 0; deadlocked != c.deadlocks {
				t.Errorf("deadlock %v, want %v", deadlocked, c.deadlocks)
			}
			if !c.deadlocks && arrived != posted {
				t.Errorf("%d of %d arrived; the others: %v", arrived, posted, l.drops())
			}
		})
	}
}
