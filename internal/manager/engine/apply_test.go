package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

const (
	red  = ib.PKey(0x8010)
	blue = ib.PKey(0x8020)
)

// bench is what a phase that writes is tested on: a snapshot of a switch with the manager and two
// hosts, and a window whose requests devices obey. Host a is in red and blue, b in red.
type bench struct {
	*testing.T
	fabric *observed.Fabric
	window *transact.Window
	a, b   *observed.Port
	want   *observed.Desired
	sets   []*observed.Port   // to whose nodes a Set has gone, in order
	last   [mad.DataSize]byte // of these
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := subnettest.New()
	sw := b.Switch(3, "switch")
	self := b.Host(sw, "manager")
	x := &bench{T: t, fabric: b.Fabric, window: transact.NewWindow(transact.DefaultLimits()), a: b.Host(sw, "a"), b: b.Host(sw, "b")}
	for p, keys := range map[*observed.Port][]ib.PKey{self: {red}, x.a: {red, blue}, x.b: {red}} {
		subnettest.SetPKeysThrough(p, keys...)
		subnettest.Enforce(p.Peer, true, true)
	}
	b.Route()
	b.ManagedFrom(self)
	x.want = observed.NewDesired(x.fabric)
	return x
}

// wants wants these keys of a host and of the switch port before it.
func (b *bench) wants(p *observed.Port, keys ...ib.PKey) {
	b.want.Port(p).PKeys, b.want.Port(p.Peer).PKeys = keys, keys
}

// exchange has devices answer until no request is under way.
func (b *bench) exchange() {
	b.Helper()
	for p := (mad.SMP{}); !b.window.Idle(); {
		if !b.window.Next(0, &p) {
			b.Fatal("it waits for nothing")
		}
		at := b.fabric.Self
		for _, exit := range p.InitialPath[1 : p.HopCount+1] {
			at = at.Node.Ports[exit].Peer
		}
		switch {
		case p.Method == mad.MethodSet:
			b.sets, b.last = append(b.sets, at), p.Data
		case p.AttributeID == smp.AttrNodeInfo:
			info := at.Node.Info
			info.LocalPortNum, info.PortGUID = at.Num, at.Agent().GUID
			if err := info.Encode(&p.Data); err != nil {
				b.Fatal(err)
			}
		case p.AttributeID == smp.AttrPKeyTable && len(b.sets) > 0: // it reads back what it has written
			p.Data = b.last
		default:
			b.Fatalf("it asks for %s", smp.AttributeName(p.AttributeID))
		}
		p.MakeResponse(mad.StatusOK)
		b.window.Receive(0, &p)
	}
}

// What takes away is written before what gives, each stage is told once, and a manager that resigns
// writes no more.
func TestWriting(t *testing.T) {
	for _, x := range []struct {
		name           string
		silent, resign bool
		want           func(b *bench)
		told, ended    int // stages, and how often it is asked until it has ended
		writes         int
	}{
		{name: "nothing", want: func(*bench) {}, ended: 1},
		{name: "one stage", want: func(b *bench) { b.wants(b.b, red, blue); b.want.Port(b.b.Peer).PKeys = nil }, told: 1, ended: 2, writes: 1},
		{name: "one is added to and one loses", want: func(b *bench) { b.wants(b.a, red); b.wants(b.b, red, blue) }, told: 3, ended: 4, writes: 4},
		{name: "silent", silent: true, want: func(b *bench) { b.wants(b.a, red); b.wants(b.b, red, blue) }, ended: 4, writes: 4},
		{name: "resigned", resign: true, want: func(b *bench) { b.wants(b.a, red); b.wants(b.b, red, blue) }, told: 1, ended: 2, writes: 1},
	} {
		b := newBench(t)
		x.want(b)
		w := &writing{run: apply.Start(b.window, plan.Diff(b.fabric, b.want), 4), silent: x.silent}
		var told []string
		asked := 0
		for ended := false; !ended && asked < 10; asked++ {
			var stage string
			if stage, ended = w.goOn(); stage != "" {
				told = append(told, stage)
			}
			if work, some := w.work(nil); !some || work.Phase != w.stage || !ended && work.Of == 0 {
				t.Errorf("%s: it reports %+v, %v", x.name, work, some)
			}
			if x.resign {
				w.resign(nil)
			}
			b.exchange()
		}
		if len(told) != x.told || len(slices.Compact(slices.Clone(told))) != x.told || asked != x.ended || w.run.Writes() != x.writes || len(b.sets) != x.writes || w.running() != w.run {
			t.Errorf("%s: told of %q, ended after %d, %d writes, %d at devices; want %d, %d, %d", x.name, told, asked, w.run.Writes(), len(b.sets), x.told, x.ended, x.writes)
		}
	}
	none := new(writing) // while a LID moves
	none.resign(nil)
	if work, some := none.work(nil); !some || work != (apply.Work{}) || none.running() != nil {
		t.Errorf("without a plan it reports %+v, %v", work, some)
	}
}

// A new policy interrupts passes and repairs, and what is in the air counts as not read then; groups and
// detours end first.
func TestApplyingGivesWay(t *testing.T) {
	for kind, gives := range map[writeKind]bool{writePass: true, writeRepair: true, writeGroups: false, writeDetour: false} {
		b := newBench(t)
		b.wants(b.a, red)
		a := &applying{writing: writing{run: apply.Start(b.window, plan.Diff(b.fabric, b.want), 4)}, kind: kind}
		a.goOn()
		if got := a.giveWay(nil, time.Second); got != gives {
			t.Errorf("kind %d gives way: %v", kind, got)
		}
		if known := b.a.Peer.PKeyBlockRead(0) && b.a.PKeyBlockRead(0); known == gives {
			t.Errorf("kind %d: the tables count as read: %v", kind, known)
		}
	}
}
