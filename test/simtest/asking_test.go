package simtest

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// asker is a host that asks subnet administration again and again, with the key
// that stands at index 0 of its table, as Linux does without a default partition.
type asker struct {
	*guest
	every time.Duration
	sent  map[uint64]time.Duration // that were not answered yet
	asked, answered,
	refused int
	lastAnswer, longest time.Duration
	slowest             time.Duration // answer, to whoever looks as soon as it comes
	over                bool
}

func (w *groups) asker(guid ib.PortGUID, every time.Duration) *asker {
	a := &asker{guest: w.host(guid), every: every, sent: map[uint64]time.Duration{}, lastAnswer: w.fabric.Now()}
	a.again()
	return a
}

// again asks, and does so later again.
func (a *asker) again() {
	a.hear()
	if a.over {
		return
	}
	a.tid++
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: mad.MethodGet, TransactionID: a.tid, AttributeID: mad.AttrClassPortInfo,
	}}
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		a.t.Fatal(err)
	}
	info := a.fabric.Agent(a.at.node).Port(a.at.num)
	if err := a.gsi.PostSend(endpoint.SendRequest{
		Op: endpoint.OpSend, Data: bytes, RemoteQP: ib.QP1, RemoteQKey: ib.QKeyGSI, To: endpoint.Address{DLID: info.MasterSMLID},
	}); err == nil { // else the host has no key at all
		a.sent[a.tid] = a.fabric.Now()
		a.asked++
	}
	a.fabric.At(a.fabric.Now()+a.every, a.again)
}

func (a *asker) hear() {
	var done [8]endpoint.Completion
	for n := a.gsi.Poll(done[:]); n > 0; n = a.gsi.Poll(done[:]) {
		for _, c := range done[:n] {
			if c.Op != endpoint.OpReceive {
				continue
			}
			var m sa.MAD
			if err := m.UnmarshalBinary(c.Bytes[endpoint.GRHSize:]); err != nil {
				a.t.Fatal(err)
			}
			if sent, mine := a.sent[m.TransactionID]; mine {
				a.slowest = max(a.slowest, a.fabric.Now()-sent)
				delete(a.sent, m.TransactionID)
				if m.Status == mad.StatusOK {
					a.answered++
					a.pause()
				} else if m.Status != mad.StatusBusy {
					a.refused++
				}
			}
			if err := a.gsi.PostReceive(endpoint.ReceiveRequest{ID: c.ID, Buffer: a.rooms[c.ID][:]}); err != nil {
				a.t.Fatal(err)
			}
		}
	}
}

// pause notes how long no answer came.
func (a *asker) pause() {
	a.longest = max(a.longest, a.fabric.Now()-a.lastAnswer)
	a.lastAnswer = a.fabric.Now()
}

// While a policy goes over from the shared default to none, and back, hosts are
// answered by subnet administration.
func TestHostsAreAnsweredWhileDefaultGoes(t *testing.T) {
	list := generate(t, "fattree,radix=8,levels=2")
	all := hosts(list)[1:] // not the manager's
	y := tenancy{tenants: []tenant{{base: 0x10, full: all[:len(all)/2]}, {base: 0x20, full: all[len(all)/2:]}}}
	shared := y.policy()
	y.none = true
	none := y.policy()
	w := newGroups(t, list, fabric.DefaultConfig(), shared)
	w.config.Profile = protect.Tenant
	w.restart(shared, false)
	for _, step := range []struct {
		name string
		to   *policy.Policy
	}{{"to none", none}, {"and back", shared}, {"to none again", none}} {
		w.settle()
		const every = 10 * time.Microsecond
		var askers []*asker
		for i, g := range all {
			if i%4 == 0 {
				askers = append(askers, w.asker(g, every))
			}
		}
		w.run(time.Millisecond)
		begin := w.fabric.Now()
		w.runner.Engine().SetPolicy(step.to)
		w.runner.Engine().Expire(w.fabric.Now())
		passes := len(w.events)
		w.until("the policy stands", func() bool {
			return slices.ContainsFunc(w.events[passes:], func(e event.Event) bool { _, is := e.(event.Completed); return is })
		})
		took := w.fabric.Now() - begin
		w.run(time.Millisecond)
		longest, asked, answered, refused := time.Duration(0), 0, 0, 0
		for _, a := range askers {
			a.pause()
			a.over = true
			longest, asked, answered, refused = max(longest, a.longest), asked+a.asked, answered+a.answered, refused+a.refused
		}
		// Those that were asked last are still under way.
		if lost := asked - answered - refused; refused > 0 || lost > 2*len(askers) || longest > 3*every || took < 5*every {
			t.Errorf("%s: %d refused, %d not answered by %d hosts, longest without an answer %v in the %v that it took", step.name, refused, lost, len(askers), longest, took)
		}
		t.Logf("%s: took %v, %d asked, %d answered, %d refused, longest without an answer %v", step.name, took, asked, answered, refused, longest)
		w.settle()
	}
}

// Without a default partition hosts join the IPoIB groups of their tenant, over its
// key at index 0, and nobody else's.
func TestGroupsWithoutDefault(t *testing.T) {
	list := generate(t, "demo")
	all := hosts(list)[1:]
	y := tenancy{none: true, tenants: []tenant{{base: 0x10, full: all[:5]}, {base: 0x20, full: all[5:10]}}}
	w := newGroups(t, list, fabric.DefaultConfig(), y.ipoib())
	w.settle()
	for i, g := range all[:10] {
		own, other := ib.PKeyBase(0x10), ib.PKeyBase(0x20)
		if i >= 5 {
			own, other = other, own
		}
		h := w.host(g)
		if key := w.fabric.Agent(h.at.node).PKeys(h.at.num)[0]; key != own.Full() {
			t.Fatalf("%v holds %v at index 0, want %v", g, key, own.Full())
		}
		h.enter(own, ipGroup(own, allHosts))
		for _, base := range []ib.PKeyBase{other, ib.PKeyBaseDefault} {
			if _, status := h.ask(mad.MethodSet, joinsBroadcast, &sa.MCMemberRecord{
				MGID: broadcastOf(base), PortGID: h.gid(), PKey: base.Full(), JoinState: sa.JoinFull,
			}); status == mad.StatusOK {
				t.Errorf("%v joins the group of %v", g, base)
			}
		}
	}
	w.settle()
	if n := w.probe(); n == 0 {
		t.Error("no packet of a group arrived anywhere")
	}
}
