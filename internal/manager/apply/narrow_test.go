package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// narrowing takes blue from host a and gives it to b, which Narrow has to leave out.
func narrowed(t *testing.T) (d *devices, p *plan.Plan) {
	d = newDevices(t, false)
	for _, f := range []*observed.Fabric{d.known, d.are} {
		subnettest.SetPKeysThrough(host(f, "a"), red, blue)
		subnettest.Enforce(host(f, "a").Peer, true, true)
	}
	a, b := host(d.known, "a"), host(d.known, "b")
	d.wantPKeys(a, red)
	d.wantPKeys(a.Peer, red)
	d.wantPKeys(b, red, blue)
	return d, plan.Narrowing(d.known, d.want)
}

func TestNarrow(t *testing.T) {
	for _, x := range []struct {
		name    string
		change  func(d *devices)
		outcome func(r request) outcome
		holds   []ib.PKey // what the switch port before a has at the end
		read    bool      // whether the snapshot knows that
		err     string    // of each failure
	}{
		{name: "taken away", holds: []ib.PKey{red, 0}, read: true},
		{name: "another switch answers there", change: func(d *devices) { d.are.Nodes[0].Info.NodeGUID++ },
			holds: []ib.PKey{red, blue}, read: true, err: errElsewhere.Error()},
		{name: "nobody says who is there", outcome: func(r request) outcome {
			return map[bool]outcome{true: lost}[r.attribute == smp.AttrNodeInfo]
		}, holds: []ib.PKey{red, blue}, read: true, err: "no answer"},
		{name: "refused", outcome: func(r request) outcome { return map[bool]outcome{true: refused}[r.method == mad.MethodSet] },
			holds: []ib.PKey{red, blue}, err: "status"},
		{name: "answer lost", outcome: func(r request) outcome { return map[bool]outcome{true: answerLost}[r.method == mad.MethodSet] },
			holds: []ib.PKey{red, 0}, err: "no answer"},
		{name: "read-back lost", outcome: func(r request) outcome {
			return map[bool]outcome{true: lost}[r.method == mad.MethodGet && r.attribute == smp.AttrPKeyTable]
		}, holds: []ib.PKey{red, 0}, err: "reading back: no answer"},
		{name: "not kept", outcome: func(r request) outcome { return map[bool]outcome{true: forgets}[r.method == mad.MethodSet] },
			holds: []ib.PKey{red, blue}, read: true},
	} {
		d, p := narrowed(t)
		if x.change != nil {
			x.change(d)
		}
		d.outcome = x.outcome
		var failures []Failure
		Narrow(d.window, p, func(f Failure) { failures = append(failures, f) })
		d.exchange()
		guard := host(d.are, "a").Peer
		if got := guard.PKeys[:2]; got[0] != x.holds[0] || got[1] != x.holds[1] {
			t.Errorf("%s: the switch port has %v, want %v", x.name, got, x.holds)
		}
		if got := host(d.are, "b").PKeys[1]; got != 0 {
			t.Errorf("%s: b was given %v", x.name, got)
		}
		at := host(d.known, "a").Peer
		if at.PKeyBlockRead(0) != x.read {
			t.Errorf("%s: the table counts as read: %v, want %v", x.name, !x.read, x.read)
		}
		if x.read && at.PKeys[1] != guard.PKeys[1] {
			t.Errorf("%s: the snapshot has %v, the device %v", x.name, at.PKeys[1], guard.PKeys[1])
		}
		if (len(failures) > 0) != (x.err != "") {
			t.Errorf("%s: %v, want %q", x.name, failures, x.err)
		}
		for _, f := range failures {
			if !strings.Contains(f.Error(), x.err) {
				t.Errorf("%s: %v, want %q", x.name, f, x.err)
			}
		}
	}
}

// A host is asked who it is, port and all; a switch may be met at any port.
func TestNarrowKnowsHosts(t *testing.T) {
	for _, guid := range []ib.PortGUID{0, 1} {
		d := newDevices(t, false)
		a := host(d.known, "a")
		for _, f := range []*observed.Fabric{d.known, d.are} {
			subnettest.SetPKeys(host(f, "a"), red, blue)
		}
		d.wantPKeys(a, red)
		host(d.are, "a").GUID += guid
		var failures []Failure
		Narrow(d.window, plan.Narrowing(d.known, d.want), func(f Failure) { failures = append(failures, f) })
		d.exchange()
		if elsewhere := len(failures) == 1 && errors.Is(failures[0], errElsewhere); elsewhere != (guid != 0) {
			t.Errorf("GUID %d more: %v", guid, failures)
		}
		if kept := host(d.are, "a").PKeys[1] == blue; kept != (guid != 0) {
			t.Errorf("GUID %d more: it keeps blue: %v", guid, kept)
		}
	}
}

// What changed since it was read is found before it is written over.
func TestReread(t *testing.T) {
	for _, x := range []struct {
		name    string
		change  func(d *devices)
		outcome func(r request) outcome
		want    string
	}{
		{name: "as it was"},
		{name: "a key", change: func(d *devices) { host(d.are, "a").PKeys[5] = 0x8099 }, want: "a: PKeyTable (modifier 0x00000000): is no longer as it was read"},
		{name: "a LID", change: func(d *devices) { host(d.are, "a").Info.LID = 77 }, want: "a: PortInfo (modifier 0x00000000): is no longer as it was read"},
		{name: "enforcement", change: func(d *devices) { subnettest.Enforce(host(d.are, "a").Peer, true, false) }, want: "switch:2: PortInfo (modifier 0x00000002): is no longer"},
		{name: "silence", outcome: func(request) outcome { return lost }, want: "no answer"},
	} {
		d := newDevices(t, false)
		everything(d)
		p := plan.Diff(d.known, d.want)
		if x.change != nil {
			x.change(d)
		}
		d.outcome = x.outcome
		var changed []error
		Reread(d.window, p, func(err error) { changed = append(changed, err) })
		d.exchange()
		if len(d.sets()) > 0 || (len(changed) > 0) != (x.want != "") || x.want != "" && !strings.Contains(changed[0].Error(), x.want) {
			t.Errorf("%s: %v, want %q", x.name, changed, x.want)
		}
		if x.change != nil && len(changed) != 1 {
			t.Errorf("%s: %v, want one", x.name, changed)
		}
		if left := plan.Diff(d.known, d.want).Len(); left != p.Len() {
			t.Errorf("%s: the snapshot has changed: %d writes, %d before", x.name, left, p.Len())
		}
	}
}

func TestWorkSaysWhatIsLeft(t *testing.T) {
	for want, w := range map[string]Work{
		"the fabric was being read; nothing was written":                          {Phase: "sweep"},
		"the fabric was being read; the fabric is as the last verdict says":       {Phase: "sweep", Stands: true, Keyed: true},
		"ports have their M_Keys, and nothing else was written":                   {Phase: "sweep", Keyed: true},
		"not all that the policy takes away is taken away, and nothing was given": {Phase: "narrow", Narrows: true, Stands: true},
		"port keys: 3 of 7 ports written":                                         {Phase: "port keys", Ports: 3, Of: 7, Stands: true},
	} {
		if got := w.String(); !strings.Contains(got, want) || !strings.HasPrefix(got, w.Phase+": ") || !strings.Contains(got, "run again to finish") {
			t.Errorf("%+v: %q, want %q", w, got, want)
		}
	}
}
