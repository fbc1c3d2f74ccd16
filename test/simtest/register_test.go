package simtest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/test/need"
)

// registering counts the Sets with ClientReregister that reach hosts, by port and second.
func (w *world) registering() map[place][]time.Duration {
	out := make(map[place][]time.Duration)
	w.mum, w.watch = false, func(a arrival) {
		var info smp.PortInfo
		if isSet(a) && a.AttributeID == smp.AttrPortInfo && info.UnmarshalBinary(a.Data[:]) == nil && info.ClientReregister {
			at := place{a.node, a.in}
			out[at] = append(out[at], a.at)
		}
	}
	return out
}

// Whatever is lost, a host is asked to register again once for a reason: by one request, and
// if nobody answered that, by others at intervals that double. Who has answered is not asked
// again because others have not.
func TestHostsAreAskedOnce(t *testing.T) {
	seed := need.Seed(t, 1)
	limits := transact.DefaultLimits()
	// A request is sent so often at the most, and takes about 3 s when nobody answers.
	tries := limits.Tries
	const lasts = 30 * time.Second
	for n := range need.Rounds(6, 100) {
		list := generate(t, "demo")
		y := halves(hosts(list))
		s := setup{list: list, policy: y.policy(), manager: engine.Config{Limits: limits}}
		s.fabric.Seed = seed + n
		w := bringUp(t, s)
		w.calm()
		w.must(w.fabric.SetLoss(0.5))
		if n%2 == 1 {
			w.deaf("red-1", smp.AttrPortInfo, true) // its program never hears of it
		}
		begin, asked := w.fabric.Now(), w.registering()
		w.engine.Reregister()
		w.engine.Expire(begin)
		w.run(lasts)
		sum := 0
		for _, guid := range hosts(list) {
			node, num, _ := w.fabric.EndPort(guid)
			at := place{node, num}
			if at == w.self {
				continue
			}
			if len(asked[at]) == 0 && n%2 == 0 {
				t.Errorf("seed %d: %v was not asked", seed+n, at)
			}
			sum += len(asked[at])
			for i, when := range asked[at] {
				// Before a moment there was one request, and one more for each doubling.
				most := tries
				for wait := 2 * time.Second; wait < when-begin; wait *= 2 {
					most += tries
				}
				if i+1 > most {
					t.Errorf("seed %d: %v was asked %d times in %v, want %d at the most", seed+n, at, i+1, when-begin, most)
				}
			}
		}
		if mean := float64(sum) / float64(len(asked)); mean > 5 {
			t.Errorf("seed %d: with half of the packets lost a host is asked %.1f times", seed+n, mean)
		} else {
			t.Logf("seed %d: %d hosts are asked %.1f times", seed+n, len(asked), mean)
		}
		w.must(w.fabric.SetLoss(0))
		w.mute("red-1", false)
		w.run(2 * time.Minute)
		for at := range asked {
			delete(asked, at)
		}
		w.calm()
		w.run(2 * time.Minute)
		if len(asked) > 0 {
			t.Errorf("seed %d: %d hosts are asked after all have answered", seed+n, len(asked))
		}
	}
}
