package compare_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/compare"
	"github.com/ibwarden/ibwarden/internal/lab/replica"
	"github.com/ibwarden/ibwarden/test/need"
)

// Every service, level and key, from every end port to every other of random
// fabrics in which much is out of order: the packet goes the way that was
// computed, hop by hop, and ends as was said.
func TestWays(t *testing.T) {
	worlds := uint64(60)
	if need.Soak() {
		worlds = 6000
	}
	seen, packets := map[reach.Disposition]int{}, 0
	first := need.Seed(t, 1)
	for seed := first; seed < first+worlds; seed++ {
		w := newWorld(seed, 1+int(seed%5), 2+int(seed*7%8), 1+int(seed%3))
		r, err := replica.Build(w.f)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, g := range r.Gaps() {
			t.Fatalf("seed %d: %v: %s", seed, g.At, g.Why)
		}
		for _, a := range w.f.EndPorts() {
			for _, b := range w.f.EndPorts() {
				if a == b {
					continue
				}
				for _, s := range []reach.Service{reach.UD, reach.RC, reach.UC, reach.RD, reach.Raw} {
					for base := range ib.PKey(bases) {
						p := reach.Packet{Service: s, PKey: base | ib.PKey(w.r.IntN(2))<<15, SL: ib.SL(w.r.IntN(16))}
						want := reach.Follow(a, b, p)
						got, err := compare.Send(r, a, b, p)
						if err != nil {
							t.Fatalf("seed %d: %s over %s, SL %d: %v", seed, s, p.PKey, p.SL, err)
						}
						if d := compare.Compare(&want, &got); d != nil {
							t.Fatalf("seed %d: %s from %s to %s over %s, SL %d: %q\n%+v\n%+v", seed, s, a, b, p.PKey, p.SL, d, want, got)
						}
						packets++
						seen[want.Disposition]++
					}
				}
			}
		}
	}
	t.Logf("%d packets in %d fabrics from seed %d: %v", packets, worlds, first, seen)
	for _, d := range reach.Dispositions() {
		if seen[d] == 0 && d != reach.Unknown && d != reach.DestinationQKey {
			t.Errorf("no packet ended as %s", d)
		}
	}
}

// Of random fabrics some reads are lost. What the trace calls unknown never
// agrees with a packet; all else does, for it does not rest on what was lost.
func TestWaysUnread(t *testing.T) {
	worlds := uint64(40)
	if need.Soak() {
		worlds = 3000
	}
	unknown, known := 0, 0
	first := need.Seed(t, 1)
	for seed := first; seed < first+worlds; seed++ {
		w := newWorld(seed, 1+int(seed%5), 2+int(seed*7%8), 2)
		w.lose()
		r, err := replica.Build(w.f)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(r.Gaps()) == 0 {
			t.Fatalf("seed %d: reads were lost, and no gap is listed", seed)
		}
		for _, a := range w.f.EndPorts() {
			for _, b := range w.f.EndPorts() {
				if a == b {
					continue
				}
				p := reach.Packet{Service: reach.Service(w.r.IntN(5)), PKey: ib.PKey(1+w.r.IntN(bases-1)) | ib.PKey(w.r.IntN(2))<<15, SL: ib.SL(w.r.IntN(16))}
				want := reach.Follow(a, b, p)
				got, err := compare.Send(r, a, b, p)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				d := compare.Compare(&want, &got)
				switch {
				case want.Disposition == reach.Unknown && d == nil:
					t.Fatalf("seed %d: %s from %s to %s: unknown (%s), and the packet agrees", seed, p.Service, a, b, want.Reason)
				case want.Disposition == reach.Unknown:
					unknown++
				case d != nil:
					t.Fatalf("seed %d: %s from %s to %s over %s, SL %d: %q", seed, p.Service, a, b, p.PKey, p.SL, d)
				default:
					known++
				}
			}
		}
	}
	t.Logf("%d fabrics from seed %d: %d packets unknown, %d as computed", worlds, first, unknown, known)
	if unknown == 0 || known == 0 {
		t.Error("nothing was lost, or all")
	}
}

// lose forgets some of what was read, and surely one thing.
func (w *world) lose() {
	seldom := func() bool { return w.r.IntN(20) == 0 }
	w.f.EndPorts()[0].PKeysRead[0] = false
	for _, n := range w.f.Nodes {
		if s := n.Switch; s != nil {
			s.InfoRead = !seldom()
			for i := range s.LFTRead {
				s.LFTRead[i] = !seldom()
			}
			for i := range s.RFTRead {
				s.RFTRead[i] = w.r.IntN(200) > 0
			}
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			p.InfoRead = p.InfoRead && !seldom()
			for b := range p.PKeysRead {
				p.PKeysRead[b] = p.PKeysRead[b] && !seldom()
			}
			for in := range n.Ports {
				if seldom() {
					delete(p.SLToVL, ib.PortNum(in))
				}
			}
		}
	}
}
