package simtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
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
		{"the master is stopped", false, mastership.DefaultMasterTimeout},
		{"the master is killed, and another standby is stopped", true, 2 * mastership.DefaultMasterTimeout},
	} {
		t.Run(x.name, func(t *testing.T) {
			list := generate(t, "demo")
			p := newPair(t, list)
			p.patient = true
			y := tenantsOf(hosts(list))
			config := func(priority uint8) engine.Config {
				return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1)}, Profile: protect.Tenant}
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

// writeEvery is the time between two changes: less than a standby takes to read the fabric.
const writeEvery = 200 * time.Microsecond

// TestAnswersUnderWrites kills a master while callers change the policy all the time, so that no
// standby ever reads the tables as the policy has them: hosts are told of the new master, and
// are answered, before the wait for what the former one sent is over, where nothing that
// concerns them has changed.
func TestAnswersUnderWrites(t *testing.T) {
	need.Long(t, "seconds of processor time")
	for n := range 3 {
		t.Run(fmt.Sprint("kill ", n), func(t *testing.T) {
			if n > 0 {
				need.Long(t, "kills at other moments")
			}
			list := generate(t, "demo")
			x := newPair(t, list)
			y := tenantsOf(hosts(list))
			config := func(priority uint8) engine.Config {
				return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1), AcceptPolicy: true}, Profile: protect.Tenant}
			}
			first := x.sit(0, config(5), x.managed(y, 0, 4))
			x.until("the first proof", time.Minute, func() bool { return first.proved(0) })
			c := x.client(2, 2+len(y.tenants))
			moving, at, next := y.tenants[1].full[3], y.tenants[1].base, y.tenants[0].base
			write := func() {
				y = y.move(moving, at, next)
				at, next = next, at
				for _, m := range x.seats {
					if p := x.managed(y, 0, 4); m == x.seats[0] {
						m.engine.Manager().SetPolicy(p)
					} else {
						m.engine.Manager().FollowPolicy(p)
					}
					if !m.gone {
						m.engine.Expire(x.fabric.Now())
					}
				}
			}
			writing := func(d time.Duration) {
				for end := x.fabric.Now() + d; x.fabric.Now() < end; x.run(writeEvery) {
					write()
				}
			}
			writing(100 * time.Millisecond)
			second := x.sit(4, config(0), x.managed(y, 0, 4))
			second.shares = first
			writing(time.Second + time.Duration(n)*7*time.Millisecond)
			f := x.failover(first, second, c)
			if lifetime := second.link.Limits().Lifetime; f.answered >= lifetime || f.proved < lifetime {
				t.Errorf("the first right answer after %v, the proof after %v: want the answer before %v, and the proof not before", f.answered, f.proved, lifetime)
			}
			t.Logf("answered after %v, proved after %v", f.answered, f.proved)
		})
	}
}

// TestEarlyAnswers: what a new master answers before it has read the tables is of the policy in
// force: a pair that this has parted since the standby read the fabric gets no path, and one
// that it has joined gets it after the proof; any other gets it at once.
func TestEarlyAnswers(t *testing.T) {
	list := generate(t, "demo")
	x := newPair(t, list)
	y := tenantsOf(hosts(list))
	config := func(priority uint8) engine.Config {
		return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1), AcceptPolicy: true}, Profile: protect.Tenant}
	}
	first := x.sit(0, config(5), x.managed(y, 0, 4))
	x.until("the first proof", time.Minute, func() bool { return first.proved(0) })
	second := x.sit(4, config(0), x.managed(y, 0, 4))
	second.shares = first
	x.run(5 * time.Second)
	moving, from, to := y.tenants[1].full[3], y.tenants[1], y.tenants[0]
	y = y.move(moving, from.base, to.base)
	p := x.managed(y, 0, 4)
	first.engine.Manager().SetPolicy(p)
	second.engine.Manager().FollowPolicy(p)
	for _, m := range x.seats {
		m.engine.Expire(x.fabric.Now())
	}
	x.until("the change is carried out", time.Minute, func() bool { return first.carriedOut(p) })
	at := func(g ib.PortGUID) int {
		return slices.IndexFunc(x.hostNodes(), func(n *topology.Node) bool { return n.Ports[1].GUID == g })
	}
	hostsOf := func(n tenant) (out []int) { // but for those of managers, and the one that moves
		for _, g := range n.full {
			if i := at(g); i != 0 && i != 4 && g != moving {
				out = append(out, i)
			}
		}
		return out
	}
	was, is := hostsOf(from), hostsOf(to)
	parted, joined, same := x.client(was[0], at(moving)), x.client(is[0], at(moving)), x.client(was[1], was[0])
	x.kill(first)
	since := x.fabric.Now()
	turn := func() {
		for _, c := range []*client{parted, joined, same} {
			c.turn()
		}
	}
	x.until("an answer to who stays", time.Minute, func() bool { turn(); return same.right > 0 })
	if took := x.fabric.Now() - since; took >= second.link.Limits().Lifetime {
		t.Errorf("who stays is answered after %v", took)
	}
	x.until("the proof", time.Minute, func() bool {
		turn()
		if joined.right > 0 && !second.proved(since) {
			t.Fatal("who was joined is answered before the tables were read")
		}
		return second.proved(since)
	})
	x.until("an answer to who was joined", time.Minute, func() bool { turn(); return joined.right > 0 })
	if parted.right > 0 {
		t.Errorf("who was parted got %d paths", parted.right)
	}
}
