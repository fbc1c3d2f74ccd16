package fabric_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// TestHardwareDelays: a request by directed route takes what its parts take, and requests
// that come together wait for each other, where they meet: in the program of the manager, in
// switches on the way, and at agents.
func TestHardwareDelays(t *testing.T) {
	h := fabric.DefaultHardware()
	link := 10*h.Metre + 290*8*time.Nanosecond/200 // the cable, and the packet at 200 Gbit/s
	program := h.Send + h.Receive
	c := fabric.DefaultConfig()
	c.Hardware = h
	for _, x := range []struct {
		hops, requests int // to the node itself, a switch 1 to 4 links away, or the host behind them
		want           time.Duration
	}{
		{0, 1, program + h.HostAgent},
		{1, 1, program + 2*link + h.SwitchAgent},
		{4, 1, program + 8*link + 6*h.Relay + h.SwitchAgent},
		{5, 1, program + 10*link + 8*h.Relay + h.HostAgent},
		{0, 5, program + 5*h.HostAgent}, // the agent is the slowest
		{1, 5, program + 2*link + 5*h.SwitchAgent},
	} {
		f := newFabric(t, chain(t, 4), c)
		a := attach(t, f, hostGUID(1), 1)
		m := encoded(t, directed(along(x.hops), mad.MethodGet, smp.AttrNodeInfo, 0))
		for range x.requests {
			a.a.Send(m, ib.LIDPermissive)
		}
		var d fabric.Delivery
		for got := 0; got < x.requests; {
			if !f.Step() {
				t.Fatalf("%d hops: %d of %d answered", x.hops, got, x.requests)
			}
			for a.a.Receive(&d) {
				got++
			}
		}
		if f.Now() != x.want {
			t.Errorf("%d requests over %d links took %v, want %v", x.requests, x.hops, f.Now(), x.want)
		}
	}
}

// TestParseHardware: what is named counts, the rest is the default, and nonsense is refused
// with the word that is wrong.
func TestParseHardware(t *testing.T) {
	want := fabric.DefaultHardware()
	for _, text := range []string{"default", "metres=10"} {
		if h, err := fabric.ParseHardware(text); err != nil || !reflect.DeepEqual(h, want) {
			t.Errorf("%q: %+v, %v", text, h, err)
		}
	}
	want = &fabric.Hardware{Metres: 1, Metre: 2, Rate: 3, Switch: 4, Relay: 5, SwitchAgent: 6, HostAgent: 7, Send: 8, Receive: 9, Waiting: 10}
	if h, err := fabric.ParseHardware("metres=1,metre=2ns,rate=3,switch=4ns,relay=5ns,switch-agent=6ns,host-agent=7ns,send=8ns,receive=9ns,waiting=10"); err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("%+v, %v", h, err)
	}
	for _, text := range []string{"", "metres", "metres=", "metres=-1", "metres=1000000", "rate=0", "switch=130", "switch=-1ns", "relay=1h", "waiting=-1", "waiting=99999999", "hop=1ns", "metres=1,,rate=2", " metres=1"} {
		_, err := fabric.ParseHardware(text)
		if err == nil {
			t.Errorf("%q is taken", text)
		} else if bad := text; !strings.Contains(err.Error(), "want") {
			t.Errorf("%q: %v does not say what is wanted", bad, err)
		}
	}
}
