package reach

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// hostPair are two hosts at two switches, all in order, without keys.
func hostPair() (f *observed.Fabric, a, b *observed.Port) {
	x := subnettest.New()
	x.PortInfo.VLCap, x.PortInfo.OperationalVLs = 1, 1
	first, second := x.Switch(8, "leaf-1"), x.Switch(8, "leaf-2")
	subnettest.Join(first, second)
	a, b = x.Host(first, "red-1"), x.Host(second, "blue-1")
	x.Route()
	for _, n := range x.Fabric.Nodes {
		for i := range n.Ports {
			n.Ports[i].SLToVL = map[ib.PortNum]smp.SLToVLMappingTable{}
			for in := range n.Ports {
				n.Ports[i].SLToVL[ib.PortNum(in)] = smp.SLToVLMappingTable{}
			}
		}
	}
	return x.Fabric, a, b
}

// setKeys gives a host keys, and the switch port before it the full key of each.
func setKeys(p *observed.Port, keys ...ib.PKey) {
	subnettest.SetPKeys(p, keys...)
	guard := slices.Clone(keys)
	for i := range guard {
		guard[i] |= 0x8000
	}
	subnettest.SetPKeys(p.Peer, guard...)
}

var names = Names{0x10: "red", 0x20: "blue"}

// Each cause with its sentence and what would help.
func TestExplain(t *testing.T) {
	for name, x := range map[string]struct {
		from, to []ib.PKey
		change   func(a, b *observed.Port)
		want     Cause
		sentence string
		remedies []string
	}{
		"talk": {[]ib.PKey{0x7fff, 0x8010}, []ib.PKey{0x7fff, 0x0010}, nil, CauseTalk, "red-1 and blue-1 can talk over red (0x0010)", nil},
		"two partitions": {[]ib.PKey{0x8010, 0x8020, 0x8030}, []ib.PKey{0x8010, 0x0020, 0x8030}, nil, CauseTalk,
			"can talk over red (0x0010), blue (0x0020) and partition 0x0030", nil},
		"both limited": {[]ib.PKey{0x7fff, 0x8010}, []ib.PKey{0x7fff, 0x8020}, nil, CauseBothLimited,
			"both are limited members of the default partition and share no other partition",
			[]string{"make red-1 a full member of the default partition", "make blue-1 a full member of the default partition"}},
		"none shared": {[]ib.PKey{0x8010}, []ib.PKey{0x8020, 0x7fff}, nil, CauseNoPartition,
			"they share no partition: red-1 is in red (0x0010), blue-1 is in blue (0x0020) and the default partition",
			[]string{"add blue-1 to red (0x0010)", "add red-1 to blue (0x0020)"}},
		"none at all": {nil, []ib.PKey{0x8020}, nil, CauseNoPartition, "red-1 is in none", []string{"add red-1 to blue (0x0020)"}},
		"no key":      {[]ib.PKey{0x8000}, []ib.PKey{0x8000}, nil, CauseNoPartition, "red-1 is in none, blue-1 is in none", nil},
		"the guard refuses": {[]ib.PKey{0x8010}, []ib.PKey{0x8010}, func(a, _ *observed.Port) { subnettest.SetPKeys(a.Peer, 0x7fff) }, CauseStopped,
			"their keys of red (0x0010) match, but a packet from red-1 to blue-1 is stopped", []string{"the tables of that switch port lack the key"}},
		"stopped on the way back": {[]ib.PKey{0x8010}, []ib.PKey{0x0010}, func(a, b *observed.Port) {
			subnettest.SetPKeys(a.Peer, 0x0010)
		}, CauseStopped, "a packet from blue-1 to red-1 is stopped", []string{"the tables of that switch port lack the key"}},
		"link down": {[]ib.PKey{0x8010}, []ib.PKey{0x8010}, func(a, _ *observed.Port) { subnettest.SetLink(a, smp.PortDown, smp.PhysPolling) }, CauseStopped,
			"is stopped", []string{"have a subnet manager bring the link up"}},
		"the default one says less": {[]ib.PKey{0xffff, 0x8010}, []ib.PKey{0xffff, 0x8010}, func(a, _ *observed.Port) { subnettest.SetPKeys(a.Peer, 0x8030) }, CauseStopped,
			"their keys of red (0x0010) match", []string{"the tables of that switch port"}},
		"table not read": {[]ib.PKey{0x8010}, []ib.PKey{0x8020}, func(_, b *observed.Port) { b.PKeysRead[0] = false }, CauseUnknown,
			"the P_Key table of blue-1 was not read whole", nil},
		"way not read": {[]ib.PKey{0x8010}, []ib.PKey{0x8010}, func(a, _ *observed.Port) { a.Peer.PKeysRead[0] = false }, CauseUnknown,
			"their keys of red (0x0010) match, but not all of the way was read", nil},
	} {
		_, a, b := hostPair()
		setKeys(a, x.from...)
		setKeys(b, x.to...)
		if x.change != nil {
			x.change(a, b)
		}
		got := Explain(a, b, View{Names: names})
		if got.Cause != x.want || !strings.Contains(got.Sentence, x.sentence) {
			t.Errorf("%s: %s: %s; want %s: %s", name, got.Cause, got.Sentence, x.want, x.sentence)
		}
		var texts []string
		for _, r := range got.Remedies {
			texts = append(texts, r.Text)
		}
		if !slices.EqualFunc(texts, x.remedies, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", name, texts, x.remedies)
		}
	}
}

// No remedy names a partition that does not take the port.
func TestTakes(t *testing.T) {
	_, a, b := hostPair()
	setKeys(a, 0x7fff, 0x8010, 0x8030)
	setKeys(b, 0x7fff, 0x8020, 0x8040)
	v := View{Names: names, Takes: func(k ib.PKeyBase, g ib.PortGUID) bool { return k == 0x10 && g == b.GUID }}
	if got := Explain(a, b, v); len(got.Remedies) != 0 || got.Cause != CauseBothLimited {
		t.Errorf("%+v", got)
	}
	setKeys(a, 0x8010, 0x8030)
	if got := Explain(a, b, v); len(got.Remedies) != 1 || got.Remedies[0] != (Remedy{AddMember, 0x10, "red", b.GUID, "add blue-1 to red (0x0010)"}) {
		t.Errorf("%+v", got)
	}
}

// What was not read makes nobody a peer, and nobody certainly none.
func TestReachUnknown(t *testing.T) {
	f, a, b := hostPair()
	setKeys(a, 0x8010)
	setKeys(b, 0x8010)
	switches := len(f.EndPorts()) - 2
	if r := ReachOf(f, a, View{Names: names}); len(r.Peers) != 1 || !r.Peers[0].Talks() || r.Peers[0].Over[0].Name != "red" || r.Others != switches || r.Unknown != 0 {
		t.Errorf("%+v", r)
	}
	b.PKeysRead[0] = false
	if r := ReachOf(f, a, View{Names: names}); len(r.Peers) != 0 || r.Others != switches || r.Unknown != 1 {
		t.Errorf("%+v", r)
	}
	a.PKeysRead[0] = false
	if r := ReachOf(f, a, View{Names: names}); len(r.Peers) != 0 || r.Others != 0 || r.Unknown != switches+1 {
		t.Errorf("%+v", r)
	}
}

// A remedy that names members is one: with it the two can talk.
func TestRemediesHelp(t *testing.T) {
	for _, keys := range [][2][]ib.PKey{{{0x7fff}, {0x7fff}}, {{0x8010, 0x0030}, {0x8020, 0x0030}}, {{0x0010}, {0x0020, 0x0040}}} {
		for i := 0; ; i++ {
			_, a, b := hostPair()
			setKeys(a, keys[0]...)
			setKeys(b, keys[1]...)
			remedies := Explain(a, b, View{Names: names}).Remedies
			if i == len(remedies) {
				if i == 0 {
					t.Error("no remedy")
				}
				break
			}
			r := remedies[i]
			p := a
			if r.Port == b.GUID {
				p = b
			}
			setKeys(p, append(slices.Clone(keys[map[*observed.Port]int{a: 0, b: 1}[p]]), r.PKey.Full())...)
			if got := Explain(a, b, View{Names: names}); got.Cause != CauseTalk {
				t.Errorf("%q: %s", r.Text, got.Sentence)
			}
		}
	}
}
