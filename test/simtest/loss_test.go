package simtest

import (
	"testing"
	"time"
)

const (
	loss = 0.05
	// maxRatio bounds how much longer it takes on average, and maxWorst how
	// much longer for any seed.
	maxRatio, maxWorst = 1.5, 2.0
	// lossSeeds is how many losses each fabric is tried with.
	lossSeeds = 12
)

// With one packet in twenty lost a fabric comes up the same, and takes little
// longer.
func TestLoss(t *testing.T) {
	for _, spec := range []string{"demo", "fattree,radix=8,levels=2", "fattree,radix=8,levels=3"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			list := generate(t, spec)
			y := halves(hosts(list))
			clean := bringUp(t, setup{list: list, policy: y.policy()})
			clean.checkUp(y)
			want, took := clean.dump(), clean.fabric.Now()
			var sum, worst time.Duration
			for seed := range uint64(lossSeeds) {
				s := setup{list: list, policy: y.policy()}
				s.fabric.Seed, s.fabric.Loss = seed+1, loss
				w := bringUp(t, s)
				if d := firstDifference(want, w.dump()); d != "" {
					t.Errorf("seed %d: other tables than without loss: %s", seed+1, d)
				}
				if r := w.result(); !r.Reached() || r.Faults != 0 {
					t.Errorf("seed %d: failures %d, inactive %d, faults %d", seed+1, r.Failures, r.Inactive, r.Faults)
				}
				sum, worst = sum+w.fabric.Now(), max(worst, w.fabric.Now())
			}
			ratio := func(d time.Duration) float64 { return float64(d) / float64(took) }
			mean := sum / lossSeeds
			t.Logf("%v without loss, with it of %d seeds mean %v (%.2f), worst %v (%.2f)",
				took, lossSeeds, mean, ratio(mean), worst, ratio(worst))
			if ratio(mean) > maxRatio || ratio(worst) > maxWorst {
				t.Errorf("takes %.2f times as long, at worst %.2f, want %.1f and %.1f at most", ratio(mean), ratio(worst), maxRatio, maxWorst)
			}
		})
	}
}
