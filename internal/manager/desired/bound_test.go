package desired

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
)

const red, blue = ib.PKeyBase(0x10), ib.PKeyBase(0x20)

// hosts are hosts behind one switch, which enforces.
func hosts(n int) (b *subnettest.Builder, ports []*observed.Port) {
	b = subnettest.New()
	sw := b.Switch(n, "switch")
	for range n {
		ports = append(ports, b.Host(sw, ""))
	}
	return b, ports
}

// givenInBound is what a port may be in red under the bound by what it holds.
func givenInBound(b *Bound, g ib.PortGUID) string {
	r := &policy.Resolution{Partitions: []observed.Partition{{Name: "red", Base: red, Full: []ib.PortGUID{g}, Limited: []ib.PortGUID{g}}}}
	out, _ := b.Within(r, 0)
	x := out.Partitions[0]
	return strings.TrimSpace(map[bool]string{true: "full"}[len(x.Full) > 0] + map[bool]string{true: " limited"}[len(x.Limited) > 0])
}

// What a host says of its own table gives it nothing where a switch port says other.
func TestHeld(t *testing.T) {
	full, limited := red.Full(), red.Limited()
	for _, x := range []struct {
		name   string
		change func(p *observed.Port)
		want   string
	}{
		{"nothing", func(*observed.Port) {}, ""},
		{"a full key in both tables", func(p *observed.Port) { subnettest.SetPKeysThrough(p, full) }, "full limited"},
		{"a limited key in both tables", func(p *observed.Port) { subnettest.SetPKeysThrough(p, limited) }, "limited"},
		{"another partition", func(p *observed.Port) { subnettest.SetPKeysThrough(p, 0x8011) }, ""},
		{"a limited member before whom the switch port holds the full key",
			func(p *observed.Port) { subnettest.SetPKeysThrough(p, full); subnettest.SetPKeys(p, limited) }, "limited"},
		{"a member of both kinds behind the full key",
			func(p *observed.Port) { subnettest.SetPKeysThrough(p, full); subnettest.SetPKeys(p, limited, full) }, "full limited"},
		{"the host claims the key, the switch port has none", func(p *observed.Port) { subnettest.SetPKeys(p, full) }, ""},
		{"the host claims full, the switch port has limited",
			func(p *observed.Port) { subnettest.SetPKeysThrough(p, limited); subnettest.SetPKeys(p, full) }, "limited"},
		{"the host claims the key, nobody checks",
			func(p *observed.Port) { subnettest.SetPKeys(p, full); subnettest.Enforce(p.Peer, false, false) }, "full limited"},
		{"the host claims the key, the switch port checks one direction",
			func(p *observed.Port) { subnettest.SetPKeys(p, full); subnettest.Enforce(p.Peer, true, false) }, "full limited"},
		{"the table of the switch port was not read",
			func(p *observed.Port) { subnettest.SetPKeys(p, limited); p.Peer.PKeysRead[0] = false }, "limited"},
		{"two devices with one GUID", func(p *observed.Port) { subnettest.SetPKeysThrough(p, full); p.Node.Contested = true }, ""},
	} {
		b, ports := hosts(1)
		x.change(ports[0])
		if got := givenInBound(BoundOf(b.Fabric.EndPorts(), "", false), ports[0].GUID); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
	b, ports := hosts(2)
	for _, p := range ports {
		subnettest.SetPKeysThrough(p, full)
	}
	ports[1].GUID = ports[0].GUID
	if got := givenInBound(BoundOf(b.Fabric.EndPorts(), "", false), ports[0].GUID); got != "" {
		t.Errorf("two ports with one GUID hold %q", got)
	}
	x := BoundOf(nil, "", false)
	x.Add(7, []ib.PKey{limited})
	if got := givenInBound(x, 7); got != "limited" {
		t.Errorf("a port that was added holds %q", got)
	}
}

// The resolution that comes in stays as it is, the manager's own port is free in the
// default partition only, and the text says who gets less.
func TestWithin(t *testing.T) {
	x := BoundOf(nil, "another manager was here", true)
	x.Add(1, []ib.PKey{red.Full()})
	whole := func() *policy.Resolution {
		return &policy.Resolution{Partitions: []observed.Partition{
			{Name: "red", Base: red, Full: []ib.PortGUID{1, 2}, Limited: []ib.PortGUID{3, 4, 5, 6, 9}, Index0: []ib.PortGUID{1, 2}},
			{Name: "Default", Base: ib.PKeyBaseDefault, Full: []ib.PortGUID{9}},
		}}
	}
	in := whole()
	out, text := x.Within(in, 9)
	want := observed.Partition{Name: "red", Base: red, Full: []ib.PortGUID{1}, Limited: []ib.PortGUID{}, Index0: []ib.PortGUID{1}}
	if got := out.Partitions[1].Full; !slices.Equal(got, []ib.PortGUID{9}) {
		t.Errorf("of the default partition %v, want the manager", got)
	}
	if diff := cmp.Diff(want, out.Partitions[0]); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(whole(), in); diff != "" {
		t.Errorf("the resolution has changed (-want +got)\n%s", diff)
	}
	for _, part := range []string{"another manager was here: 6 memberships are not given", `port 0x0000000000000002 of partition "red"`, ", and more)", "SIGHUP"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q, want %q", text, part)
		}
	}
	if strings.Contains(text, "0x0000000000000009") {
		t.Errorf("%q names more than %d", text, shownMemberships)
	}
	// Without a default partition hosts ask the manager in each of theirs: it is in those that have a host.
	in.NoDefault = true
	in.Partitions = append(in.Partitions, observed.Partition{Name: "blue", Base: blue, Full: []ib.PortGUID{2, 9}})
	if out, _ = x.Within(in, 9); !slices.Equal(out.Partitions[0].Limited, []ib.PortGUID{9}) || len(out.Partitions[2].Full) != 0 {
		t.Errorf("of red %v, want the manager; of blue %v, want nobody", out.Partitions[0].Limited, out.Partitions[2].Full)
	}
	if out, _ = x.Within(in, 1); len(out.Partitions[2].Full) != 0 || len(out.Partitions[0].Limited) != 0 {
		t.Errorf("with another port as the manager's: of red %v, of blue %v, want nobody", out.Partitions[0].Limited, out.Partitions[2].Full)
	}
	in = whole()
	x = BoundOf(nil, "", false)
	for g := range ib.PortGUID(10) {
		x.Add(g, []ib.PKey{red.Full()})
	}
	x.Add(9, []ib.PKey{red.Full(), ib.PKeyBaseDefault.Full()})
	if out, text := x.Within(in, 0); out != in || text != "" {
		t.Errorf("nobody gets less: %q", text)
	}
}

// After a master with another policy nothing is given that tables do not show either, and
// that is said, also where no member is left out. The policy itself stays as it is.
func TestOtherPolicy(t *testing.T) {
	b, ports := hosts(1)
	subnettest.SetPKeysThrough(ports[0], red.Full())
	guid := ports[0].GUID
	r := &policy.Resolution{Partitions: []observed.Partition{{Name: "red", Base: red, Full: []ib.PortGUID{guid}}}, Trusted: []ib.PortGUID{guid}}
	loose := policy.DefaultSettings()
	loose.EnforceInbound = false
	p := &policy.Policy{AllowRaw: true, Settings: &loose}
	for _, other := range []bool{false, true} {
		bound := BoundOf(b.Fabric.EndPorts(), "it died", true)
		bound.Other = other
		out, text := bound.Within(r, 0)
		if got := len(out.Trusted) == 0; got != other || len(r.Trusted) != 1 || len(out.Partitions[0].Full) != 1 {
			t.Errorf("other %v: trusted %v of %v, members %v", other, out.Trusted, r.Trusted, out.Partitions[0].Full)
		}
		if got := strings.Contains(text, "it died; the manager before had another policy") && strings.Contains(text, "SIGHUP") && !strings.Contains(text, "accept-policy"); got != other {
			t.Errorf("other %v: %q", other, text)
		}
		tight := bound.Tight(p)
		if s := tight.Asked(); tight.AllowRaw == other || s.EnforceInbound != other || !s.EnforceOutbound || !p.AllowRaw || loose.EnforceInbound {
			t.Errorf("other %v: raw %v, enforcement %v", other, tight.AllowRaw, s.EnforceInbound)
		}
		if bound.Tight(nil) != nil {
			t.Error("a policy out of nothing")
		}
	}
}
