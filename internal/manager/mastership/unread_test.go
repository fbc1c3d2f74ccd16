package mastership

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Before the subnet was read, and before this manager's own port in it is known, nothing is
// asked of anybody, no manager is known and no reminder is due.
func TestBeforeTheSubnetIsRead(t *testing.T) {
	for _, fabric := range []*observed.Fabric{nil, {}} {
		r, hosts := newRig(t, strict(), 1)
		was := r.b.Fabric
		r.Placed(was.Self.GUID)
		if r.b.Fabric = fabric; fabric == nil {
			r.Ask()
			r.AskAll()
			r.AskOthers(0)
			if got := r.AskAgain(); got != 1 || r.Managers() != nil || r.Names(hosts[0]) || r.IsMaster() {
				t.Errorf("%d rounds, %v", got, r.Managers())
			}
		}
		r.Ping()
		r.Tick(priorityTrapInterval)
		var p mad.SMP
		if w := r.Next(0, &p); w != nil || len(r.answers) > 0 || r.waitsForHandover() != nil {
			t.Errorf("asks %v %v of somebody", p.Method, p.AttributeID)
		}
	}
}

// recheckHost answers a question to another manager, and notes the sweeps that are wanted.
type recheckHost struct {
	*rigHost
	info  smp.SMInfo
	fails error
	sweep string
}

func (h *recheckHost) Want(w Want, why string) {
	if w == WantSweep {
		h.sweep = why
	}
}
func (h *recheckHost) Ask(r transact.Request, then func(transact.Reply)) {
	if h.fails != nil {
		then(transact.Reply{Err: h.fails})
		return
	}
	var m mad.SMP
	_ = h.info.Encode(&m.Data)
	then(transact.Reply{SMP: &m})
}

// Where every manager counts, a sweep is wanted when one of the last election has another
// GUID, state or priority than it had, and for nothing else.
func TestRecheckAll(t *testing.T) {
	before := smp.SMInfo{GUID: 7, SMState: smp.SMStandby, Priority: 3, ActCount: 1}
	for name, x := range map[string]struct {
		change func(*smp.SMInfo)
		want   bool
	}{
		"nothing":   {func(*smp.SMInfo) {}, false},
		"its count": {func(i *smp.SMInfo) { i.ActCount++ }, false},
		"GUID":      {func(i *smp.SMInfo) { i.GUID++ }, true},
		"state":     {func(i *smp.SMInfo) { i.SMState = smp.SMMaster }, true},
		"priority":  {func(i *smp.SMInfo) { i.Priority++ }, true},
	} {
		r, hosts := newRig(t, Config{Election: ElectionConfig{Priority: 5}}, 2)
		h := &recheckHost{rigHost: (*rigHost)(r), info: before}
		r.Peers = New(Config{Limits: transact.DefaultLimits()}, h)
		r.Placed(r.b.Fabric.Self.GUID)
		r.rivals = map[*observed.Port]smp.SMInfo{hosts[0]: before}
		x.change(&h.info)
		r.RecheckAll()
		want := ""
		if x.want {
			want = fmt.Sprintf("the subnet manager at %s is %s now", hosts[0], h.info.SMState)
		}
		if h.sweep != want {
			t.Errorf("another %s: wants %q, want %q", name, h.sweep, want)
		}
	}
}
