package simtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/engine"
)

// Policies come at any moment, one before the other is carried out, while the
// subnet is read, written or looked at and devices fall silent: between no two
// packets can anybody talk that none of them lets, not even by forged tables, and
// the last one is what stands in the end.
func TestPoliciesAtAnyTime(t *testing.T) {
	seed, soak := soakSeed(t)
	rounds := 12
	if soak {
		rounds = 300
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range uint64(4) {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed+n, 7))
			list := generate(t, fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,routers=1,ca-ports=%d", (seed+n)%1000, 2+n%3, 6+n, 1+n%2))
			y := randomTenancy(r, ends(list), 4)
			w := bringUp(t, setup{list: list, policy: y.policy()})
			w.calm()
			x := newExposure(w)
			x.rule(y)
			for range rounds {
				tenancies := []tenancy{y}
				for range 1 + r.IntN(3) {
					tenancies = append(tenancies, randomTenancy(r, ends(list), 4))
				}
				x.rule(tenancies...)
				silent := fmt.Sprintf("H%d", 1+r.IntN(5))
				for _, y = range tenancies[1:] {
					switch r.IntN(4) {
					case 0:
						w.engine.SetCables(nil) // the subnet is read again
						w.run(time.Duration(r.IntN(1100)) * time.Millisecond)
					case 1:
						w.mute(silent, true)
					}
					w.engine.SetPolicy(y.policy())
					w.run(time.Duration(r.IntN(200)) * time.Microsecond)
				}
				w.mute(silent, false)
				w.run(engine.DefaultDriftPeriod + 3*engine.DefaultSweepInterval)
				w.settle()
				x.rule(y)
				x.check(t)
				w.checkKeys(y)
				if t.Failed() {
					return
				}
				w.forget()
			}
			t.Logf("%d SMPs, %d packets tried, %d exposed", x.smps, x.packets, x.exposed)
		})
	}
}
