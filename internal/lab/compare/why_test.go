package compare_test

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/compare"
	"github.com/ibwarden/ibwarden/internal/lab/replica"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// Two ports of random fabrics in which much is out of order can talk, says package why,
// exactly where packets of some partition get through both ways; and whoever is not said
// to be a peer gets none with any key of its table.
func TestWhyIsWhatPacketsDo(t *testing.T) {
	first := need.Seed(t, 1)
	causes := map[reach.Cause]int{}
	for seed := first; seed < first+uint64(need.Rounds(40, 4000)); seed++ {
		w := newWorld(seed, 1+int(seed%5), 2+int(seed*7%8), 1+int(seed%3))
		r, err := replica.Build(w.f)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, a := range w.f.EndPorts() {
			reached := reach.ReachOf(w.f, a, reach.View{})
			peers := map[*observed.Port]bool{}
			paged := []reach.Peer{}
			for after := ib.PortGUID(0); ; after = paged[len(paged)-1].GUID {
				page := reach.PeersAfter(w.f, a, reach.View{}, after, 2, func(ib.PortGUID) bool { return true })
				if paged = append(paged, page...); len(page) < 2 {
					break
				}
			}
			slices.SortFunc(paged, func(x, y reach.Peer) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.GUID, y.GUID)) })
			if !reflect.DeepEqual(paged, reached.Peers) {
				t.Fatalf("seed %d: the peers of %v by pages are %v, want %v", seed, a, paged, reached.Peers)
			}
			for i := range reached.Peers {
				peers[reached.Peers[i].Port] = reached.Peers[i].Talks()
			}
			for _, b := range w.f.EndPorts() {
				if a == b {
					continue
				}
				there, back := gotThrough(t, r, a, b), gotThrough(t, r, b, a)
				want := slices.ContainsFunc(there, func(k ib.PKeyBase) bool { return slices.Contains(back, k) })
				answer := reach.Explain(a, b, reach.View{})
				if got := answer.Cause == reach.CauseTalk; got != want || peers[b] != want || answer.Cause == reach.CauseUnknown {
					t.Fatalf("seed %d: %s to %s: %s, peer %v; packets get through of %v, and back of %v", seed, a, b, answer.Sentence, peers[b], there, back)
				}
				if matched := (answer.Cause == reach.CauseTalk || answer.Cause == reach.CauseStopped); matched != slices.ContainsFunc(a.PKeys, func(k ib.PKey) bool { return slices.ContainsFunc(b.PKeys, k.Matches) }) {
					t.Fatalf("seed %d: %s to %s: %s, with keys %v and %v", seed, a, b, answer.Sentence, a.PKeys, b.PKeys)
				}
				causes[answer.Cause]++
			}
		}
	}
	t.Logf("from seed %d: %v", first, causes)
	for _, c := range []reach.Cause{reach.CauseTalk, reach.CauseNoPartition, reach.CauseBothLimited, reach.CauseStopped} {
		if causes[c] == 0 {
			t.Errorf("no pair was %s", c)
		}
	}
}

// gotThrough are the partitions of which a packet with a key of the sender's table gets
// through.
func gotThrough(t *testing.T, r *replica.Replica, from, to *observed.Port) (out []ib.PKeyBase) {
	t.Helper()
	for _, k := range from.PKeys {
		if !k.IsValid() {
			continue
		}
		j, err := compare.Send(r, from, to, reach.Packet{PKey: k})
		if err != nil {
			t.Fatal(err)
		}
		if j.End == replica.Delivered {
			out = append(out, k.Base())
		}
	}
	return out
}
