package apply

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// everything wants a bit of everything to be otherwise, and links of two hosts to
// come up.
func everything(d *devices) {
	for _, name := range []string{"a", "b", "c"} {
		p := host(d.known, name)
		d.wantPKeys(p, slices.Insert(make([]ib.PKey, 34), 0, blue)...)
		d.want.Port(p).PKeys[34] = 0x0030 // in the second block
		d.wantPKeys(p.Peer, blue, 0x8030)
		d.want.Port(p).Elements, d.want.Port(p).Info.LID = observed.ElementLID, 0x40+p.Info.LID
		d.want.Port(p.Peer).Elements = observed.ElementGuard
		x := &d.want.Port(p.Peer).Info
		x.PartitionEnforcementInbound, x.PartitionEnforcementOutbound = true, true
		if name != "c" {
			for _, f := range []*observed.Fabric{d.known, d.are} {
				subnettest.SetLink(host(f, name), smp.PortInit, smp.PhysLinkUp)
			}
			d.want.Port(p).Activate, d.want.Port(p.Peer).Activate = true, true
		}
	}
	d.want.Port(host(d.known, "a")).GUIDs = []ib.PortGUID{0, 0xA1}
	sw := &d.want.Nodes[0]
	sw.LFT = slices.Repeat([]ib.PortNum{2}, 128)
	sw.Multicast = &observed.DesiredMulticast{
		Blocks: map[uint32]smp.MulticastForwardingTable{0: {Masks: [32]uint16{0: 1 << 2}}},
		Top:    ib.LIDMulticastMin, Primary: ib.PortNone, NotPrimary: ib.PortNone,
	}
}

// A plan that meets no trouble leaves every device and the snapshot as wanted, one
// stage after the other, with no more requests under way than it may have.
func TestCarriesOutAPlan(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		d := newDevices(t, guarded)
		everything(d)
		p := plan.Diff(d.known, d.want)
		var stages []string
		for _, s := range p.Stages {
			stages = append(stages, s.Name)
		}
		r := Start(d.window, p, 3)
		d.stage = r.Stage
		if done, of := r.Progress(); done != 0 || of != 7 || !r.Pending() || r.Stage() != "" {
			t.Errorf("at first %d of %d ports are done, pending %v, stage %q", done, of, r.Pending(), r.Stage())
		}
		before := 0
		for !r.Advance() {
			d.exchange()
			done, _ := r.Progress()
			if done < before {
				t.Errorf("%s: %d ports done, and %d before", r.Stage(), done, before)
			}
			before = done
		}
		if done, of := r.Progress(); done != of || r.Pending() {
			t.Errorf("at last %d of %d ports are done, pending %v", done, of, r.Pending())
		}
		if len(r.Failures()) > 0 || len(r.Forgets()) > 0 || r.Writes() != p.Len() || len(d.sets()) != p.Len() {
			t.Errorf("failures %v, forgets %v, %d writes and %d arrived, want %d", r.Failures(), r.Forgets(), r.Writes(), len(d.sets()), p.Len())
		}
		if d.most > 3 {
			t.Errorf("%d requests under way at once, want 3 at the most", d.most)
		}
		var order []string
		for _, s := range d.sets() {
			order = append(order, s.stage)
		}
		if diff := cmp.Diff(stages, slices.Compact(order)); diff != "" {
			t.Errorf("guarded %v: stages (-want +got)\n%s", guarded, diff)
		}
		// The plan of what is left is made from the devices, not from the snapshot.
		if left := plan.Diff(d.known, d.want); left.Len() != 0 {
			t.Errorf("the snapshot misses %v", left.Stages)
		}
		if left := plan.Diff(d.are, d.want); left.Len() != 0 {
			t.Errorf("the devices miss %v", left.Stages)
		}
	}
}

// What isolates is read back after it was written.
func TestReadsBackWhatIsolates(t *testing.T) {
	d := newDevices(t, true)
	everything(d)
	d.run()
	type block struct {
		port      *observed.Port
		attribute mad.AttributeID
		modifier  uint32
	}
	read := map[block]bool{}
	for _, r := range slices.Backward(d.asked) {
		b := block{r.port, r.attribute, r.modifier}
		if r.method == mad.MethodGet {
			read[b] = true
		} else if r.attribute == smp.AttrPKeyTable && !read[b] {
			t.Errorf("%s: block %#x of P_KeyTable was not read back", r.port, r.modifier)
		}
	}
	if len(read) == 0 {
		t.Error("nothing was read")
	}
}

// Whatever becomes of the write that takes a partition from a port, nobody else gets
// that partition; others are given.
func TestNobodyGetsWhatCouldNotBeTaken(t *testing.T) {
	for _, x := range []struct {
		name    string
		outcome outcome
		known   bool // what the port holds then
		why     string
	}{
		{"refused", refused, false, "status"},
		{"lost", lost, false, "no answer"},
		{"answer lost", answerLost, false, "no answer"},
		{"ignored", ignored, true, "reads back differently"},
	} {
		d := newDevices(t, false)
		a, b, c := host(d.known, "a"), host(d.known, "b"), host(d.known, "c")
		for _, f := range []*observed.Fabric{d.known, d.are} {
			subnettest.SetPKeys(host(f, "a"), red, blue)
		}
		d.wantPKeys(a, red)         // loses blue
		d.wantPKeys(b, red, blue)   // gets it
		d.wantPKeys(c, red, 0x8030) // gets something else
		d.outcome = func(r request) outcome {
			if r.isSet(smp.AttrPKeyTable, "a") {
				return x.outcome
			}
			return obeyed
		}
		r := d.run()
		if got := host(d.are, "b").PKeys[1]; got != 0 {
			t.Errorf("%s: b has %v", x.name, got)
		}
		if got := host(d.are, "c").PKeys[1]; got != 0x8030 {
			t.Errorf("%s: c has %v", x.name, got)
		}
		if a.PKeyBlockRead(0) != x.known {
			t.Errorf("%s: the table of a counts as read: %v", x.name, !x.known)
		}
		f := r.Failures()
		if len(f) != 2 || f[0].Port != a || !strings.Contains(f[0].Error(), x.why) || f[1].Port != b || !errors.Is(f[1], errWithheld) {
			t.Errorf("%s: %v", x.name, f)
		}
	}
}

// TestKeepsAndGainsNothing: AU-07 a port from which a partition could not be taken gains none, in whatever
// block of its table; where it could, it does.
func TestKeepsAndGainsNothing(t *testing.T) {
	for _, kept := range []bool{true, false} {
		d := newDevices(t, false)
		a := host(d.known, "a")
		for _, f := range []*observed.Fabric{d.known, d.are} {
			subnettest.SetPKeys(host(f, "a"), red, blue)
		}
		keys := slices.Insert(make([]ib.PKey, 34), 0, red)
		keys[34] = 0x8030 // in the second block
		d.wantPKeys(a, keys...)
		d.outcome = func(r request) outcome {
			if kept && r.isSet(smp.AttrPKeyTable, "a") && r.modifier == 0 {
				return ignored
			}
			return obeyed
		}
		r := d.run()
		if got := host(d.are, "a").PKeys[34]; (got == 0) != kept {
			t.Errorf("kept %v: a has %v", kept, got)
		}
		if f := r.Failures(); kept && (len(f) != 2 || !errors.Is(f[1], errKeeps)) || !kept && len(f) > 0 {
			t.Errorf("kept %v: %v", kept, f)
		}
	}
}

// A read-back that does not come is no proof either, though the write was answered.
func TestReadBackIsLost(t *testing.T) {
	d := newDevices(t, false)
	a := host(d.known, "a")
	d.wantPKeys(a, red, blue)
	d.outcome = func(r request) outcome {
		if r.method == mad.MethodGet && r.attribute == smp.AttrPKeyTable {
			return lost
		}
		return obeyed
	}
	f := d.run().Failures()
	if len(f) != 1 || !errors.Is(f[0], transact.ErrNoAnswer) || !strings.Contains(f[0].Error(), "a: PKeyTable: reading back") || a.PKeysKnown() {
		t.Errorf("%v, known %v", f, a.PKeysKnown())
	}
}

// A host that keeps a partition, or says so, takes nothing from others where its
// switch port stops the partition. One whose switch port did not obey does.
func TestHeldOff(t *testing.T) {
	for _, x := range []struct {
		name   string
		stays  string // who refuses to give up blue
		change func(f *observed.Fabric)
		want   ib.PKey // what b gets
	}{
		{"the host keeps it", "a", nil, blue},
		{"the switch port keeps it", "switch", nil, 0},
		{"the host keeps it, its link carries nothing", "a", func(f *observed.Fabric) {
			subnettest.Enforce(host(f, "a").Peer, false, false)
			subnettest.SetLink(host(f, "a"), smp.PortInit, smp.PhysLinkUp)
		}, blue},
		{"the host keeps it, its link is Armed, nothing is checked", "a", func(f *observed.Fabric) {
			subnettest.Enforce(host(f, "a").Peer, false, false)
			subnettest.SetLink(host(f, "a"), smp.PortArmed, smp.PhysLinkUp)
		}, 0},
		{"the host keeps it, nothing is checked", "a", func(f *observed.Fabric) {
			subnettest.Enforce(host(f, "a").Peer, false, false)
		}, 0},
		{"the host keeps it, inbound is not checked", "a", func(f *observed.Fabric) {
			subnettest.Enforce(host(f, "a").Peer, false, true)
		}, 0},
	} {
		d := newDevices(t, true)
		a, b := host(d.known, "a"), host(d.known, "b")
		for _, f := range []*observed.Fabric{d.known, d.are} {
			subnettest.SetPKeysThrough(host(f, "a"), red, blue)
			if x.change != nil {
				x.change(f)
			}
		}
		d.wantPKeys(a, red)
		d.wantPKeys(a.Peer, red)
		d.wantPKeys(b, red, blue)
		d.wantPKeys(b.Peer, red, blue)
		d.outcome = func(r request) outcome {
			if r.isSet(smp.AttrPKeyTable, x.stays) && r.port != host(d.are, "b").Peer {
				return refused
			}
			return obeyed
		}
		d.run()
		if got := host(d.are, "b").PKeys[1]; got != x.want {
			t.Errorf("%s: b has %v, want %v", x.name, got, x.want)
		}
		if got := host(d.are, "b").Peer.PKeys[1]; got != x.want {
			t.Errorf("%s: the switch port of b has %v, want %v", x.name, got, x.want)
		}
	}
}

// What the caller withholds is given to nobody.
func TestWithhold(t *testing.T) {
	d := newDevices(t, false)
	d.wantPKeys(host(d.known, "a"), red, blue)
	d.wantPKeys(host(d.known, "b"), red, 0x8030)
	r := d.carry(plan.Diff(d.known, d.want), func(r *Run) { r.Withhold([]ib.PKeyBase{blue.Base()}) })
	if f := r.Failures(); len(f) != 1 || !errors.Is(f[0], errWithheld) || host(d.are, "a").PKeys[1] != 0 || host(d.are, "b").PKeys[1] != 0x8030 {
		t.Errorf("%v; a has %v, b has %v", f, host(d.are, "a").PKeys[1], host(d.are, "b").PKeys[1])
	}
}

// An alias GUID that could not be taken from a port is given to nobody.
func TestAliasGUIDsStay(t *testing.T) {
	for _, taken := range []bool{true, false} {
		d := newDevices(t, false)
		for _, f := range []*observed.Fabric{d.known, d.are} {
			for _, name := range []string{"a", "b", "c"} {
				p := host(f, name)
				p.GUIDInfo = map[uint32]smp.GUIDInfo{0: {GUIDs: [8]uint64{uint64(p.GUID)}}}
			}
			a := host(f, "a")
			a.GUIDInfo[0] = smp.GUIDInfo{GUIDs: [8]uint64{uint64(a.GUID), 0xA1}}
			host(f, "c").GUIDInfo[0] = smp.GUIDInfo{GUIDs: [8]uint64{0xFEED}} // it says so, and nobody can change it
		}
		d.want.Port(host(d.known, "a")).GUIDs = []ib.PortGUID{0}
		d.want.Port(host(d.known, "b")).GUIDs = []ib.PortGUID{0, 0xA1}
		d.want.Port(host(d.known, "c")).GUIDs = []ib.PortGUID{0, 0xC1}
		d.outcome = func(r request) outcome {
			if r.isSet(smp.AttrGUIDInfo, "a") && !taken {
				return refused
			}
			return obeyed
		}
		r := d.run()
		want := map[bool]uint64{true: 0xA1}[taken]
		if got := host(d.are, "b").GUIDInfo[0].GUIDs[1]; got != want {
			t.Errorf("taken %v: b has %#x, want %#x", taken, got, want)
		}
		if got := host(d.are, "c").GUIDInfo[0].GUIDs[1]; got != 0xC1 {
			t.Errorf("taken %v: c has %#x", taken, got)
		}
		if f := r.Failures(); !taken && (len(f) != 2 || !errors.Is(f[1], errAliasHeld)) || taken && len(f) > 0 {
			t.Errorf("taken %v: %v", taken, f)
		}
	}
}

// When a multicast table keeps a port that it should lose, none gains one: old and
// new tree together may lead in a circle.
func TestStaleMulticast(t *testing.T) {
	for _, lost := range []bool{false, true} {
		d := newDevices(t, false)
		for _, f := range []*observed.Fabric{d.known, d.are} {
			f.Nodes[0].Switch.MFT = map[uint32]smp.MulticastForwardingTable{0: {Masks: [32]uint16{0: 1 << 2}}}
		}
		d.want.Nodes[0].Multicast = &observed.DesiredMulticast{
			Blocks: map[uint32]smp.MulticastForwardingTable{0: {Masks: [32]uint16{0: 1 << 3}}},
			Top:    ib.LIDMulticastMin, Primary: ib.PortNone, NotPrimary: ib.PortNone,
		}
		d.outcome = func(r request) outcome {
			if lost && r.isSet(smp.AttrMulticastForwardingTable, "switch") && r.stage == "narrow multicast" {
				return refused
			}
			return obeyed
		}
		r := d.run()
		got := d.are.Nodes[0].Switch.MFT[0].Masks[0]
		if want := map[bool]uint16{false: 1 << 3, true: 1 << 2}[lost]; got != want {
			t.Errorf("lost %v: the table has %#b, want %#b", lost, got, want)
		}
		stale := slices.ContainsFunc(r.Failures(), func(f Failure) bool { return errors.Is(f, errStale) })
		if stale != lost || !lost && len(r.Failures()) > 0 {
			t.Errorf("lost %v: %v", lost, r.Failures())
		}
	}
}

// Strict ends a run at the first write that does not hold; what is under way is
// still awaited.
func TestStrict(t *testing.T) {
	d := newDevices(t, false)
	everything(d)
	d.outcome = func(r request) outcome {
		if r.isSet(smp.AttrPKeyTable, "b") {
			return refused
		}
		return obeyed
	}
	p := plan.Diff(d.known, d.want)
	r := d.carry(p, (*Run).Strict)
	if f := r.Failures(); len(f) != 1 || f[0].Port != host(d.known, "b") {
		t.Errorf("%v", f)
	}
	sets := d.sets()
	at := slices.IndexFunc(sets, func(r request) bool { return r.isSet(smp.AttrPKeyTable, "b") })
	if after := len(sets) - at - 1; after > 2 || len(sets) == p.Len() {
		t.Errorf("%d writes after the one that did not hold, want those that were under way with it: 2 at the most", after)
	}
}

// A run that ends early leaves what it wrote, and going back is a plan like another:
// wherever it ends, undone is as before.
func TestUndo(t *testing.T) {
	for cut := 0; ; cut++ {
		d := newDevices(t, true)
		everything(d)
		before := observed.NewDesired(d.known)
		for _, name := range []string{"a", "b", "c"} {
			p := host(d.known, name)
			before.Port(p).PKeys, before.Port(p.Peer).PKeys = slices.Clone(p.PKeys), slices.Clone(p.Peer.PKeys)
			before.Port(p).Elements, before.Port(p).Info.LID = observed.ElementLID, p.Info.LID
			before.Port(p.Peer).Elements, before.Port(p.Peer).Info = observed.ElementGuard, p.Peer.Info
		}
		sent := 0
		r := Start(d.window, plan.Diff(d.known, d.want), 3)
		d.stage = r.Stage
		d.outcome = func(q request) outcome {
			if q.method == mad.MethodSet {
				if sent++; sent > cut {
					r.Stop()
					return lost
				}
			}
			return obeyed
		}
		for !r.Advance() {
			d.exchange()
		}
		d.outcome = nil
		whole := sent <= cut
		d.sweep()
		if back := d.carry(plan.Diff(d.known, before), nil); len(back.Failures()) > 0 {
			t.Fatalf("undone after %d writes: %v", cut, back.Failures())
		}
		then := fabric(true)
		for _, name := range []string{"a", "b", "c"} {
			for _, x := range [][2]*observed.Port{{host(d.are, name), host(then, name)}, {host(d.are, name).Peer, host(then, name).Peer}} {
				if !slices.Equal(x[0].PKeys, x[1].PKeys) || x[0].Info.LID != x[1].Info.LID || x[0].Enforces() != x[1].Enforces() {
					t.Fatalf("undone after %d writes: %s has %v, LID %d", cut, x[0], x[0].PKeys, x[0].Info.LID)
				}
			}
		}
		if whole {
			break
		}
	}
}

// Abort says of all that was sent and not answered that it is not known.
func TestAbort(t *testing.T) {
	for _, x := range []struct {
		attribute mad.AttributeID
		may       bool
	}{{smp.AttrPKeyTable, true}, {smp.AttrPortInfo, true}, {smp.AttrLinearForwardingTable, false}, {smp.AttrGUIDInfo, false}} {
		d := newDevices(t, false)
		everything(d)
		r := Start(d.window, plan.Diff(d.known, d.want), 3)
		var p mad.SMP
		for found := false; !found; {
			if r.Advance() {
				t.Fatalf("%#x is never written", x.attribute)
			}
			for found = false; d.window.Next(d.now, &p); {
				if p.Method == mad.MethodSet && p.AttributeID == x.attribute {
					found = true
					break
				}
				if d.answer(&p) {
					d.window.Receive(d.now, &p)
				}
			}
			if !found {
				d.exchange()
			}
		}
		if r.MayAbort() != x.may {
			t.Errorf("with a write of %#x under way it may be aborted: %v", x.attribute, !x.may)
		}
		r.Abort()
		d.window.Forget()
		at := d.at(&p)
		at = selected(d.known.Node(at.Node.GUID()).Port(at.Num), &p)
		switch x.attribute {
		case smp.AttrPKeyTable:
			if at.PKeyBlockRead(int(p.AttributeModifier & 0xFFFF)) {
				t.Errorf("%s: its keys count as read", at)
			}
		case smp.AttrPortInfo:
			if at.InfoRead {
				t.Errorf("%s: its PortInfo counts as read", at)
			}
		case smp.AttrLinearForwardingTable:
			if at.Node.Switch.LFTRead[p.AttributeModifier] {
				t.Errorf("%s: its forwarding table counts as read", at)
			}
		}
		if !r.Advance() || !d.window.Idle() {
			t.Error("it goes on")
		}
	}
}
