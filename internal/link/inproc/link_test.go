package inproc_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// asker is an engine that is nothing but a request window.
type asker struct {
	*transact.Window
	traps []mad.SMP
}

func (a *asker) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	if !a.Window.Next(now, p) {
		return 0, false
	}
	return a.LIDOf(p), true
}

func (a *asker) Receive(now time.Duration, p *mad.SMP, _ ib.LID) {
	if p.Method == mad.MethodTrap {
		a.traps = append(a.traps, *p)
		return
	}
	a.Window.Receive(now, p)
}

func newLink(t *testing.T, c fabric.Config, paced bool) (*inproc.Link, *asker) {
	t.Helper()
	topology := topology.Demo()
	f, err := fabric.New(topology, c)
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := topology.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, paced)
	if err != nil {
		t.Fatal(err)
	}
	return l, &asker{Window: transact.NewWindow(l.Limits())}
}

// ask asks every port of the first switch n times for PortInfo, and counts the
// answers and the failures.
func ask(a *asker, n int) (answered, failed *int) {
	answered, failed = new(int), new(int)
	for i := range n * 8 {
		a.Do(transact.Request{
			Path: mad.Path{1}, Method: mad.MethodGet, Attribute: smp.AttrPortInfo, Modifier: uint32(i % 9),
		}, func(r transact.Reply) {
			if r.Err != nil {
				*failed++
				return
			}
			*answered++
		})
	}
	return answered, failed
}

func TestDrive(t *testing.T) {
	for name, config := range map[string]fabric.Config{
		"usual delays": fabric.DefaultConfig(),
		"no delays":    {},
		"slow":         {HopDelay: time.Millisecond, AgentDelay: 20 * time.Millisecond, Jitter: 80 * time.Millisecond},
		"equal delays": {HopDelay: 1, AgentDelay: 1000},
		"much jitter":  {HopDelay: 1, Jitter: time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { testDrive(t, config) })
	}
}

func testDrive(t *testing.T, config fabric.Config) {
	l, a := newLink(t, config, false)
	answered, failed := ask(a, 100)
	if err := l.Drive(t.Context(), a, a.Idle); err != nil {
		t.Fatal(err)
	}
	if *answered != 800 || *failed != 0 {
		t.Errorf("%d answered, %d failed, want 800 and none", *answered, *failed)
	}
	if got := a.Counts().Retried; got != 0 {
		t.Errorf("%d requests were sent again although none was lost", got)
	}
	if got := l.Fabric().Received(mad.MethodGet, smp.AttrPortInfo); got != 800 {
		t.Errorf("agents saw %d requests, want 800", got)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// What the fabric loses is asked for again.
func TestDriveWithLoss(t *testing.T) {
	c := fabric.DefaultConfig()
	c.Loss = 0.2
	l, a := newLink(t, c, false)
	answered, failed := ask(a, 100)
	if err := l.Drive(t.Context(), a, a.Idle); err != nil {
		t.Fatal(err)
	}
	if *answered != 800 || *failed != 0 {
		t.Errorf("%d answered, %d failed, want 800 and none", *answered, *failed)
	}
	if a.Counts().Retried == 0 {
		t.Error("none was sent again although a fifth was lost")
	}
}

// Nobody answers: every request ends all the same.
func TestDriveMute(t *testing.T) {
	l, a := newLink(t, fabric.DefaultConfig(), false)
	if err := l.Fabric().SetLoss(1); err != nil {
		t.Fatal(err)
	}
	answered, failed := ask(a, 2)
	if err := l.Drive(t.Context(), a, a.Idle); err != nil {
		t.Fatal(err)
	}
	if *answered != 0 || *failed != 16 {
		t.Errorf("%d answered, %d failed, want none and 16", *answered, *failed)
	}
}

// What comes in unasked reaches the engine.
func TestDriveTraps(t *testing.T) {
	l, a := newLink(t, fabric.DefaultConfig(), false)
	var info smp.PortInfo
	var request transact.Request
	request.Path, request.Method, request.Attribute = nil, mad.MethodGet, smp.AttrPortInfo
	a.Do(request, func(r transact.Reply) {
		if r.Err != nil || info.UnmarshalBinary(r.SMP.Data[:]) != nil {
			t.Errorf("PortInfo: %v", r.Err)
			return
		}
		info.LID, info.MasterSMLID, info.PortState, info.PortPhysicalState = 1, 1, smp.PortStateNoChange, smp.PhysNoChange
		request.Method = mad.MethodSet
		if err := info.Encode(&request.Data); err != nil {
			t.Error(err)
		}
		a.Do(request, func(transact.Reply) {})
	})
	if err := l.Drive(t.Context(), a, a.Idle); err != nil {
		t.Fatal(err)
	}
	if err := l.SetIsSM(true); err != nil {
		t.Fatal(err)
	}
	if err := l.Drive(t.Context(), a, func() bool { return len(a.traps) > 0 }); err != nil {
		t.Fatal(err)
	}
	var n smp.Notice
	if err := n.UnmarshalBinary(a.traps[0].Data[:]); err != nil || n.TrapNumber != smp.TrapLocalChange {
		t.Errorf("trap %d (%v), want 144", n.TrapNumber, err)
	}
}

func TestDriveEnds(t *testing.T) {
	l, a := newLink(t, fabric.DefaultConfig(), false)
	if err := l.Drive(t.Context(), a, func() bool { return false }); err == nil {
		t.Error("waiting for what never comes: no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Drive(ctx, a, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := inproc.New(l.Fabric(), 1, 1, false); err == nil {
		t.Error("a node that is not there: no error")
	}
}

// A paced link takes about as long as the fabric's clock says, and ends with
// its context while it waits.
func TestPaced(t *testing.T) {
	l, a := newLink(t, fabric.DefaultConfig(), true)
	const wait = 150 * time.Millisecond
	happened := false
	l.Fabric().At(wait, func() { happened = true })
	begin := time.Now()
	if err := l.Drive(t.Context(), a, func() bool { return happened }); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < wait {
		t.Errorf("%v of simulated time took %v", wait, took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	l.Fabric().At(time.Hour, func() {})
	if err := l.Drive(ctx, a, func() bool { return false }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a context that ends during the wait: %v", err)
	}
}
