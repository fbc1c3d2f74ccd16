package master_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// TestResume: what another master kept is taken instead of what is here, unless hosts were told
// here of what no store has; and not where it makes no sense.
func TestResume(t *testing.T) {
	theirs := server.State{Aliases: map[ib.PortGUID][]ib.PortGUID{0x43: {0x99}}}
	twice := server.State{Aliases: map[ib.PortGUID][]ib.PortGUID{0x43: {0x99}, 0x44: {0x99}}}
	for _, late := range []bool{false, true} {
		r := newRig(t, engine.Config{}, server.Config{Keep: true})
		if err := r.Keep(server.State{}, func(server.State) error { return nil }); err != nil {
			t.Fatal(err)
		}
		r.Share(func() bool { return true })
		r.drive(r.Settled)
		p, now := r.port("red-1"), r.fabric.Now()
		r.ReceiveGeneral(now, join(t, p, red), mad.Address{LID: p.Info.LID, QP: 1})
		r.Expire(now)
		if _, some := r.answerAt(now); some {
			t.Fatal("the host was told before the store has it")
		}
		if late { // nobody stores it
			now += 10 * time.Second
			r.Expire(now)
			if _, some := r.answerAt(now); !some || r.warned("they are answered all the same") != 1 {
				t.Fatal("the host was not told in the end")
			}
		}
		whole, err := r.Resume(theirs)
		if has := r.Registered(); whole == late || err != nil || (len(has.Aliases) == 1) == late || (len(has.Groups.Groups) > 0) != late {
			t.Errorf("told late: %v: whole %v, %v: %+v", late, whole, err, has)
		}
		if !late {
			if _, err := r.Resume(twice); err == nil {
				t.Errorf("an alias of two ports: %v", err)
			}
		}
	}
}
