package simtest

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// post sends subnet administration a request and does not wait for the answer,
// which may go elsewhere.
func (h *guest) post(method mad.Method, id mad.AttributeID, mask sa.ComponentMask, r sa.Record) {
	h.t.Helper()
	h.tid++
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: method, TransactionID: h.tid, AttributeID: id,
	}, ComponentMask: mask}
	b, err := r.AppendBinary(nil)
	if err == nil {
		copy(m.Data[:], b)
		b, err = m.AppendBinary(nil)
	}
	if err == nil {
		err = h.gsi.PostSend(endpoint.SendRequest{
			Op: endpoint.OpSend, Data: b, RemoteQP: ib.QP1, RemoteQKey: ib.QKeyGSI,
			To: endpoint.Address{DLID: h.fabric.Agent(h.at.node).Port(h.at.num).MasterSMLID},
		})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.run(10 * time.Millisecond)
	h.answered()
}

// take has the root of the host give its port a LID, with an M_Key that keeps the
// manager from putting it right, and reports whether the port obeyed.
func (h *guest) take(lid ib.LID, key ib.MKey) bool {
	h.t.Helper()
	info := *h.fabric.Agent(h.at.node).Port(h.at.num)
	info.LID, info.MKey, info.PortState, info.PortPhysicalState = lid, key, smp.PortStateNoChange, smp.PhysNoChange
	info.LinkDownDefaultState, info.ClientReregister = 0, false
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnDirected, Method: mad.MethodSet,
		TransactionID: uint64(h.guid), AttributeID: smp.AttrPortInfo, AttributeModifier: uint32(h.at.num),
		DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
	b, err := info.AppendBinary(nil)
	if err != nil {
		h.t.Fatal(err)
	}
	copy(p.Data[:], b)
	var bytes [mad.Size]byte
	if err := p.Encode(&bytes); err != nil {
		h.t.Fatal(err)
	}
	a, err := h.fabric.Attach(h.at.node, h.at.num)
	if err != nil {
		h.t.Fatal(err)
	}
	a.Send(&bytes, ib.LIDPermissive)
	h.fabric.AdvanceTo(h.fabric.Now() + wait)
	a.Detach()
	return h.fabric.Agent(h.at.node).Port(h.at.num).LID == lid
}

// robbed is a fabric with a victim that registered all that a host can, a
// neighbour of its tenant, and a host of another.
type robbed struct {
	*groups
	victim, neighbour, foreign *guest
	lid                        ib.LID // of the victim
	mgid                       ib.GID
}

func newRobbed(t *testing.T, c engine.Config) *robbed {
	t.Helper()
	p, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	w := &robbed{groups: newGroups(t, topology.Demo(), fabric.DefaultConfig(), p), mgid: ib.GID{0: 0xFF, 1: 0x12, 15: 9}}
	w.config.Profile, w.config.Keys = c.Profile, c.Keys
	w.config.Periods.Sweep, w.config.Periods.Drift = time.Second, time.Second
	w.restart(p, false)
	const red, blue ib.PKeyBase = 0x10, 0x20
	for _, at := range sortedPlaces(w.hosts) {
		guid := w.hosts[at]
		switch base := w.fabric.Agent(at.node).PKeys(at.num)[0].Base(); {
		case base == red && w.victim == nil:
			w.victim = w.host(guid)
		case base == red && w.neighbour == nil:
			w.neighbour = w.host(guid)
		case base == blue && w.foreign == nil:
			w.foreign = w.host(guid)
		}
	}
	w.lid = w.fabric.Agent(w.victim.at.node).Port(w.victim.at.num).LID
	if _, status := w.victim.ask(mad.MethodSet, joinsOther&^(sa.MCMemberRecordMTUSelector|sa.MCMemberRecordRateSelector), &sa.MCMemberRecord{
		MGID: w.mgid, PortGID: w.victim.gid(), PKey: red.Full(), QKey: 7, JoinState: sa.JoinFull,
	}); status != mad.StatusOK {
		t.Fatalf("the victim's group: %s", status)
	}
	w.victim.post(mad.MethodSet, sa.AttrServiceRecord, sa.ServiceRecordServiceID|sa.ServiceRecordServiceGID, &sa.ServiceRecord{ServiceID: 5, ServiceGID: w.victim.gid()})
	w.victim.post(mad.MethodSet, sa.AttrInformInfo, 0, w.inform(1))
	if got := w.registered(); got != (count{1, 1, 1}) {
		t.Fatalf("the victim registered %+v", got)
	}
	return w
}

func sortedPlaces(hosts map[place]ib.PortGUID) []place {
	var out []place
	for at := range hosts {
		out = append(out, at)
	}
	slices.SortFunc(out, func(a, b place) int { return int(hosts[a]) - int(hosts[b]) })
	return out
}

func (w *robbed) inform(subscribe uint8) *sa.InformInfo {
	return &sa.InformInfo{
		LIDRangeBegin: 0xFFFF, LIDRangeEnd: 0xFFFF, IsGeneric: 1, Subscribe: subscribe, Type: 0xFFFF, TrapNumber: smp.TrapGIDInService, Producer: 0xFFFFFF, QPN: 1,
	}
}

// count is what is registered in the victim's name, and that nobody else may.
type count struct{ members, services, subscriptions int }

func (w *robbed) registered() (n count) {
	s := w.runner.Administration().State(w.fabric.Now())
	for _, g := range s.Groups.Groups {
		for _, m := range g.Members {
			if m.Port == w.victim.guid && g.MGID == w.mgid {
				n.members++
			}
		}
	}
	for _, x := range s.Services {
		if x.Port == w.victim.guid {
			n.services++
		}
	}
	for _, x := range s.Subscriptions {
		if x.Port == w.victim.guid {
			n.subscriptions++
		}
	}
	return n
}

// rob has a host ask for all that would change what the victim registered.
func (w *robbed) rob(thief *guest) {
	w.t.Helper()
	thief.post(mad.MethodDelete, sa.AttrMCMemberRecord, leaves, &sa.MCMemberRecord{MGID: w.mgid, PortGID: w.victim.gid(), JoinState: sa.JoinFull})
	thief.post(mad.MethodSet, sa.AttrServiceRecord, sa.ServiceRecordServiceID|sa.ServiceRecordServiceGID, &sa.ServiceRecord{ServiceID: 6, ServiceGID: w.victim.gid()})
	thief.post(mad.MethodSet, sa.AttrInformInfo, 0, w.inform(0))
}

// served reports whether a host's question is answered as it should be.
func (h *guest) served(r *sa.MCMemberRecord) mad.Status {
	_, status := h.ask(mad.MethodGet, sa.MCMemberRecordMGID, r)
	return status
}

// TestTakenLID: root gives its port the LID of another and asks subnet
// administration in its name.
func TestTakenLID(t *testing.T) {
	t.Run("without protection it ends what the other registered", func(t *testing.T) {
		w := newRobbed(t, engine.Config{})
		if !w.neighbour.take(w.lid, 0) {
			t.Fatal("the port does not take the LID")
		}
		w.rob(w.neighbour)
		if got := w.registered(); got != (count{0, 2, 0}) {
			t.Errorf("of the victim there is %+v: the attack does not work, and proves nothing", got)
		}
	})
	t.Run("with keys the port does not obey", func(t *testing.T) {
		w := newRobbed(t, keyed())
		for _, thief := range []*guest{w.neighbour, w.foreign} {
			if thief.take(w.lid, 0) || thief.take(w.lid, 0x666) {
				t.Fatal("the port took the LID")
			}
			w.rob(thief)
		}
		if got := w.registered(); got != (count{1, 1, 1}) {
			t.Errorf("of the victim there is %+v", got)
		}
		if status := w.victim.served(&sa.MCMemberRecord{MGID: w.mgid}); status != mad.StatusOK {
			t.Errorf("the victim is answered with %s", status)
		}
	})
	t.Run("a taken LID is nobody's, and what its owner registered stays", func(t *testing.T) {
		w := newRobbed(t, engine.Config{Profile: protect.Tenant})
		if !w.neighbour.take(w.lid, 0x666) {
			t.Fatal("the port does not take the LID")
		}
		w.until("the manager knows", func() bool { claims, _ := w.runner.Engine().Claims(); return len(claims) > 0 })
		for range 5 {
			w.rob(w.neighbour)
			w.run(time.Second)
		}
		if got := w.registered(); got != (count{1, 1, 1}) {
			t.Errorf("of the victim there is %+v", got)
		}
		if !slices.ContainsFunc(w.events, func(e event.Event) bool { x, is := e.(event.Warned); return is && x.Text != "" }) {
			t.Error("nobody was told")
		}
		if status := w.victim.served(&sa.MCMemberRecord{MGID: w.mgid}); status != sa.StatusRequestInvalid {
			t.Errorf("the victim, which cannot be told from the thief, is answered with %s", status)
		}
		if err := w.fabric.PowerOff(w.neighbour.at.node); err != nil {
			t.Fatal(err)
		}
		w.run(5 * time.Second)
		if status := w.victim.served(&sa.MCMemberRecord{MGID: w.mgid}); status != mad.StatusOK {
			t.Errorf("after the thief went the victim is answered with %s", status)
		}
	})
	t.Run("a thief of another tenant keeps nobody from being served", func(t *testing.T) {
		w := newRobbed(t, engine.Config{Profile: protect.Tenant})
		if !w.foreign.take(w.lid, 0x666) {
			t.Fatal("the port does not take the LID")
		}
		w.rob(w.foreign) // before anybody knows
		w.until("the manager knows", func() bool { claims, _ := w.runner.Engine().Claims(); return len(claims) > 0 })
		w.rob(w.foreign)
		if got := w.registered(); got != (count{1, 1, 1}) {
			t.Errorf("of the victim there is %+v", got)
		}
		if status := w.victim.served(&sa.MCMemberRecord{MGID: w.mgid}); status != mad.StatusOK {
			t.Errorf("the victim is answered with %s", status)
		}
	})
}
