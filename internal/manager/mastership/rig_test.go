package mastership

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// behaviour is what a manager behind a port does when it is asked.
type behaviour uint8

const (
	silent   behaviour = iota
	nameless           // answers, and proves nothing
	partner            // shares the secret
)

// rig is a manager's peers at a switch with hosts, on a clock of its own.
type rig struct {
	testing.TB
	*Peers
	b        *subnettest.Builder
	leaf     *observed.Node
	fences   facts.FenceSet
	list     *cables.List
	rules    Rules
	states   map[*observed.Port]smp.SMState // standby where none is set
	events   []event.Event
	answers  []mad.SMP
	restated int
	does     map[*observed.Port]behaviour
	asked    map[*observed.Port]int
	now      time.Duration
}

// secret is what managers of ours share.
var secret = mkey.NewRing([mkey.SecretSize]byte{1}).SMKey

// newRig has a manager at host "self" of a switch, and n other hosts.
func newRig(t testing.TB, c Config, n int) (r *rig, hosts []*observed.Port) {
	t.Helper()
	r = &rig{TB: t, b: subnettest.New(), does: map[*observed.Port]behaviour{}, states: map[*observed.Port]smp.SMState{}, asked: map[*observed.Port]int{}}
	r.leaf = r.b.Switch(n+1, "leaf")
	self := r.b.Host(r.leaf, "self")
	for range n {
		hosts = append(hosts, r.b.Host(r.leaf, ""))
	}
	r.b.Route()
	r.b.ManagedFrom(self)
	c.Limits = transact.DefaultLimits()
	r.Peers = New(c, (*rigHost)(r))
	return r, hosts
}

// lead makes the manager master of its own.
func (r *rig) lead() {
	r.Helper()
	r.Placed(r.b.Fabric.Self.GUID)
	r.Begin(r.now)
	r.run(time.Second)
	if _, master := r.Decide(r.now); !master {
		r.Fatal("it is not master")
	}
}

// run lets time pass.
func (r *rig) run(d time.Duration) {
	r.Helper()
	for end := r.now + d; ; {
		r.Expire(r.now)
		r.Tick(r.now)
		r.Advance(r.now)
		var p mad.SMP
		for w := r.Next(r.now, &p); w != nil; w = r.Next(r.now, &p) {
			if answer, some := r.answer(p); some {
				w.Receive(r.now, &answer)
			}
			r.Advance(r.now)
		}
		if r.now == end {
			return
		}
		due, some := r.Due(false, false)
		if !some {
			due = end
		}
		r.now = min(max(due, r.now+time.Millisecond), end)
	}
}

// answer is what a device, or the manager behind it, answers.
func (r *rig) answer(p mad.SMP) (mad.SMP, bool) {
	for _, q := range r.b.Fabric.EndPorts() {
		if len(q.Path) != int(p.HopCount) || !slices.EqualFunc(q.Path, p.InitialPath[1:1+p.HopCount], func(n ib.PortNum, b byte) bool { return byte(n) == b }) {
			continue
		}
		if p.AttributeID == smp.AttrPortInfo {
			_ = q.Info.Encode(&p.Data)
			p.MakeResponse(mad.StatusOK)
			return p, true
		}
		r.asked[q]++
		var asker smp.SMInfo
		if r.does[q] == silent || asker.UnmarshalBinary(p.Data[:]) != nil {
			return p, false
		}
		info := smp.SMInfo{GUID: q.GUID, SMState: cmp.Or(r.states[q], smp.SMStandby)}
		if r.does[q] == partner && asker.SMKey == secret(asker.GUID, q.GUID) {
			info.SMKey = secret(q.GUID, asker.GUID)
		}
		_ = info.Encode(&p.Data)
		p.MakeResponse(mad.StatusOK)
		return p, true
	}
	return p, false
}

// says sets IsSM of a port, and has the manager read it.
func (r *rig) says(p *observed.Port, on bool, does behaviour) {
	r.does[p] = does
	p.Info.CapabilityMask &^= smp.CapIsSM
	if on {
		p.Info.CapabilityMask |= smp.CapIsSM
	}
	r.Note(p, on)
}

// fenced reports whether the switch port before a host is fenced.
func (r *rig) fenced(p *observed.Port) bool { return r.fences[p.Peer.Place()] != "" }

// asks is a Get of SMInfo by a host, which came by its directed route.
func (r *rig) asks(p *observed.Port, info smp.SMInfo, method mad.Method, control uint32) {
	m := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnDirected, Method: method, TransactionID: 9,
		AttributeID: smp.AttrSMInfo, AttributeModifier: control, HopCount: 2, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
	m.ReturnPath[2], m.ReturnPath[1] = byte(r.b.Fabric.Self.Num), byte(p.Peer.Num)
	_ = info.Encode(&m.Data)
	r.Receive(r.now, &m, ib.LIDPermissive)
}

// alarms are the reasons of those so far.
func (r *rig) alarms() (out []string) {
	for _, e := range r.events {
		if a, is := e.(event.RogueManager); is {
			out = append(out, a.Reason)
		}
	}
	return out
}

// rigHost is the manager of a rig.
type rigHost rig

func (h *rigHost) Facts() *Facts {
	f := &Facts{Fabric: h.b.Fabric, Cables: h.list, Fences: h.fences}
	if f.Fabric != nil {
		f.Ends = slices.SortedFunc(slices.Values(f.Fabric.EndPorts()), func(p, q *observed.Port) int { return cmp.Compare(p.GUID, q.GUID) })
	}
	return f
}
func (h *rigHost) Rules() Rules                               { return h.rules }
func (h *rigHost) Ask(transact.Request, func(transact.Reply)) {}
func (h *rigHost) Withholds(Message) bool                     { return false }
func (h *rigHost) Follow(Effects)                             {}
func (h *rigHost) Shared(bool)                                {}
func (h *rigHost) Fence(at observed.Place, reason string) bool {
	x := facts.FenceEdit{Fabric: h.b.Fabric, Set: h.fences}
	x.Put(at, reason)
	h.fences = x.Set
	return true
}
func (h *rigHost) Unfence(at observed.Place, reason string) {
	x := facts.FenceEdit{Fabric: h.b.Fabric, Set: h.fences}
	x.Lift(at, reason)
	h.fences = x.Set
}

func (h *rigHost) Emit(e event.Event) {
	if _, is := e.(event.PhaseBegun); !is {
		h.events = append(h.events, e)
	}
}
func (h *rigHost) Answer(p mad.SMP, _ ib.LID, _ int) { h.answers = append(h.answers, p) }
func (h *rigHost) Want(w Want, _ string) {
	if w == WantProof {
		h.restated++
	}
}

// strict is the configuration of a strict manager that shares a secret.
func strict(trusted ...ib.PortGUID) Config {
	return Config{Profile: protect.Strict, Election: ElectionConfig{Priority: 5, Key: secret, Trusted: trusted}}
}
