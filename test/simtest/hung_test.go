package simtest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/election"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// TestHungManagers: a standby takes over from a master whose process is stopped, and whose port
// says all the while that it has a manager, as soon as from one that is killed; a second
// standby that hangs delays it by no more than a manager has to answer.
func TestHungManagers(t *testing.T) {
	for _, x := range []struct {
		name  string
		other bool // the other standby is stopped, and the master killed
		most  time.Duration
	}{
		{"the master is stopped", false, election.DefaultMasterTimeout},
		{"the master is killed, and another standby is stopped", true, 2 * election.DefaultMasterTimeout},
	} {
		t.Run(x.name, func(t *testing.T) {
			list := generate(t, "demo")
			p := newPair(t, list)
			p.patient = true
			y := tenantsOf(hosts(list))
			config := func(priority uint8) engine.Config {
				return engine.Config{Priority: priority, Profile: protect.Tenant, SMKeys: ring(1)}
			}
			at := []int{0, 4, 8}
			first := p.sit(at[0], config(5), p.managed(y, at...))
			p.until("the first proof", time.Minute, func() bool { return first.proved(0) })
			second, third := p.sit(at[1], config(2), p.managed(y, at...)), p.sit(at[2], config(0), p.managed(y, at...))
			p.run(30 * time.Second)
			c := p.client(2, 2+len(y.tenants))
			since := p.fabric.Now()
			if x.other {
				third.asleep = true
				p.kill(first)
			} else {
				first.asleep = true
			}
			p.until("a right answer", time.Minute, func() bool {
				c.turn()
				return c.right > 0
			})
			took := p.fabric.Now() - since
			over := false
			for _, h := range second.events {
				_, is := h.Event.(event.TakingOver)
				over = over || is
			}
			if !over || took > x.most {
				t.Errorf("taken over %v, the first right answer after %v, want at most %v", over, took, x.most)
			}
			t.Logf("the first right answer after %v", took)
		})
	}
}
