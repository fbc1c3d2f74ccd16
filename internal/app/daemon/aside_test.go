package daemon

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// TestReadingAside: packets of a reading on demand leave when the manager has none, and their answers,
// and what is lost of them, go to the reading and not to the manager.
func TestReadingAside(t *testing.T) {
	r := broughtUp(t, 0)
	a, now := &r.aside, r.Now()
	due, some := a.Deadline()
	if at, is := a.Engine.Deadline(); at != due || is != some || a.owns(&mad.SMP{}) {
		t.Errorf("without a reading the next is at %v, of the manager at %v", due, at)
	}
	f := r.Engine().Fabric()
	of := &reader{window: transact.NewWindow(transact.Limits{Window: 4, Tries: 1, FirstTimeout: time.Millisecond, MinTimeout: time.Millisecond, MaxTimeout: time.Millisecond})}
	of.discovery = sweep.Complete(of.window, sweep.Options{}, f)
	read, replies, lost := 0, 0, 0
	a.reader, a.read = of, func() { read++ }
	to := f.EndPorts()[0]
	ask := func() {
		of.window.Do(transact.Request{Path: to.Path, Method: mad.MethodGet, Attribute: smp.AttrNodeDescription}, func(x transact.Reply) {
			if replies++; x.Err != nil {
				lost++
			}
		})
	}
	ask()
	ask()
	var first, second mad.SMP
	early := 0
	for _, p := range []*mad.SMP{&first, &second} {
		for p.AttributeID != smp.AttrNodeDescription {
			lid, some := a.Next(now, p)
			if !some {
				t.Fatal("the reading sends nothing")
			}
			if a.owns(p) != (p.AttributeID == smp.AttrNodeDescription) || a.owns(p) && lid != of.window.LIDOf(p) {
				t.Fatalf("%+v to %d: whose is it?", p, lid)
			}
			if !a.owns(p) && first.AttributeID == smp.AttrNodeDescription {
				early++
			}
		}
	}
	if early > 0 {
		t.Errorf("%d packets of the manager waited for the reading", early)
	}
	if got, want := a.LastWait(&first), of.LastWait(&first); got != want || got == 0 {
		t.Errorf("waits %v for it at the last, of the reading %v", got, want)
	}
	if at, some := a.Deadline(); !some || at > now+time.Second {
		t.Errorf("the next is at %v, %v: the reading waits too", at, some)
	}
	get := first // a Get of somebody with the same number is no answer
	a.Receive(now, &get, 0)
	if replies != 0 || read != 0 {
		t.Errorf("%d answers to a question", replies)
	}
	first.MakeResponse(mad.StatusOK)
	a.Receive(now, &first, 0)
	if replies != 1 || lost != 0 {
		t.Errorf("%d answers, %d lost", replies, lost)
	}
	for range 10 {
		if a.reader == nil {
			break
		}
		now += time.Second
		var again mad.SMP
		a.Expire(now)
		for _, some := a.Next(now, &again); some; _, some = a.Next(now, &again) {
		}
	}
	if replies != 2 || lost != 1 || read != 1 || a.reader != nil || a.owns(&second) {
		t.Errorf("%d answers, %d lost, read %d times, reading still %v", replies, lost, read, a.reader != nil)
	}
	if got := a.LastWait(&second); got != a.Engine.LastWait(&second) {
		t.Errorf("waits %v for what nobody reads", got)
	}
}
