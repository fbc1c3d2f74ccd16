package certificate

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// small is a switch with two hosts, cabled to its ports 1 and 2.
func small() (*subnettest.Builder, *observed.Node, *observed.Port, *observed.Port) {
	b := subnettest.New()
	sw := b.Switch(3, "leaf 1")
	red, blue := b.Host(sw, "red%1"), b.Host(sw, "")
	for i, p := range b.Fabric.EndPorts() {
		p.Info.MKey, p.Info.MKeyProtectBits = ib.MKey(0x1122334455667700+uint64(i)), 2
	}
	subnettest.SetPKeysThrough(red, 0x0010, 0x8010, 0x8003)
	subnettest.SetPKeysThrough(blue, 0x8020)
	return b, sw, red, blue
}

func input(b *subnettest.Builder, red, blue *observed.Port) Input {
	return Input{
		Fabric: b.Fabric, ReadAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Revision: 12, Snapshot: make([]byte, 32),
		Allowed: []observed.Partition{
			{Name: "blue", Base: 0x20, Full: subnettest.GUIDs(blue)}, {Name: "", Base: 0x10, Full: subnettest.GUIDs(red), Limited: subnettest.GUIDs(red)},
			{Name: "absent", Base: 0x30, Full: []ib.PortGUID{0x99}},
		},
	}
}

const whole = `ibwarden certificate 1
made 2026-01-02T03:04:05Z
expires 2026-01-09T03:04:05Z
revision 12
snapshot 0000000000000000000000000000000000000000000000000000000000000000
policy -
raw denied
partition 0010 -
partition 0020 blue
partition 0030 absent
keys 0 -
keys 1 8003 8010
keys 2 8010
keys 3 8020
class 0 ports=1
class 2 ports=1
class 3 ports=1
switch 0x0000000000001000 ports=3 entries=32 enforces=both filters=no key=own protect=2 lease=0 name=leaf%201
port 0x0000000000001000 001 state=4 enforce=both filter=no keys=1
port 0x0000000000001000 002 state=4 enforce=both filter=no keys=3
port 0x0000000000001000 003 state=1 enforce=no filter=no keys=0
end 0x0000000000001001 node=0x0000000000001000 port=000 type=switch keys=0 class=0 key=own protect=2 lease=0 name=leaf%201
end 0x0000000000001011 node=0x0000000000001010 port=001 type=ca keys=1 class=2 key=own protect=2 lease=0 name=red%251
end 0x0000000000001021 node=0x0000000000001020 port=001 type=ca keys=3 class=3 key=own protect=2 lease=0 name=-
cable 0x0000000000001000 001 0x0000000000001010 001 unlisted
cable 0x0000000000001000 002 0x0000000000001020 001 unlisted
`

func TestWrite(t *testing.T) {
	b, _, red, blue := small()
	want := fmt.Sprintf("%ssha256 %x\n", whole, sha256.Sum256([]byte(whole)))
	if got := string(Write(input(b, red, blue))); got != want {
		t.Errorf("got\n%s", got)
	}
	in := input(b, red, blue)
	slices.Reverse(in.Allowed)
	if got := string(Write(in)); got != want {
		t.Errorf("another order of partitions gives\n%s", got)
	}
}

// TestFacts changes one thing, and wants the lines that say so.
func TestFacts(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(sw *observed.Node, red, blue *observed.Port, in *Input)
		want   []string
	}{
		{"SwitchInfo", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Switch.InfoRead = false },
			[]string{"entries=unread enforces=unread filters=unread", "001 state=4 enforce=both filter=no keys=unread"}},
		{"no tables", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Switch.Info.PartitionEnforcementCap = 0 }, []string{"entries=0 ", "001 state=4 enforce=both filter=no keys=none"}},
		{"caps", func(sw *observed.Node, _, _ *observed.Port, _ *Input) {
			i := &sw.Switch.Info
			i.InboundEnforcementCap, i.FilterRawOutboundCap = false, true
		}, []string{"entries=32 enforces=out filters=out"}},
		{"PortInfo", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Ports[1].InfoRead = false }, []string{"001 state=unread enforce=unread filter=unread keys=1"}},
		{"bits", func(sw *observed.Node, _, _ *observed.Port, _ *Input) {
			sw.Ports[1].Info.PartitionEnforcementOutbound, sw.Ports[1].Info.FilterRawInbound = false, true
		}, []string{"001 state=4 enforce=in filter=in keys=1"}},
		{"a block", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.PKeysRead[0] = false }, []string{"type=ca keys=unread class=2"}},
		{"more than is read", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.Node.Info.PartitionCap = 9999 }, []string{"type=ca keys=unread"}},
		{"no M_Key", func(_ *observed.Node, red, _ *observed.Port, _ *Input) {
			red.Info.MKey, red.Info.MKeyProtectBits = 0, 0
		}, []string{"key=none protect=0 lease=0 name=red"}},
		{"hidden", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.Info.MKey = 0 }, []string{"key=hidden protect=2 lease=0 name=red"}},
		{"guessable", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.Info.MKey = 0xffffffff }, []string{"key=weak protect=2 lease=0 name=red"}},
		{"few bytes", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.Info.MKey = 0x1212121212121213 }, []string{"key=weak"}},
		{"a GUID", func(_ *observed.Node, red, _ *observed.Port, _ *Input) {
			red.GUID, red.Info.MKey = 0x1234567890abcdef, 0x1234567890abcdef
		}, []string{"key=weak"}},
		{"shared", func(_ *observed.Node, red, blue *observed.Port, _ *Input) { red.Info.MKey = blue.Info.MKey }, []string{"key=shared protect=2 lease=0 name=red", "key=shared protect=2 lease=0 name=-"}},
		{"lease", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Ports[0].Info.MKeyLeasePeriod = 65535 }, []string{"key=own protect=2 lease=65535 name=leaf"}},
		{"agent", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Ports[0].InfoRead = false }, []string{"key=unread protect=unread lease=unread name=leaf"}},
		{"raw", func(_ *observed.Node, _, _ *observed.Port, in *Input) { in.RawAllowed = true }, []string{"raw allowed\n"}},
		{"listed", func(_ *observed.Node, red, _ *observed.Port, in *Input) {
			in.Cables = func(p *observed.Port) bool { return p == red || p == red.Peer }
		}, []string{"0x0000000000001010 001 listed", "0x0000000000001020 001 unlisted"}},
		{"listed at one end", func(_ *observed.Node, red, _ *observed.Port, in *Input) {
			in.Cables = func(p *observed.Port) bool { return p == red }
		}, []string{"0x0000000000001010 001 unlisted"}},
		{"contested", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.Node.Contested = true }, []string{"unread 0x0000000000001010 another%20device"}},
		{"not reached", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.Reached = false }, []string{"class 0 ports=1\nclass 2 ports=1\n"}},
		{"router", func(_ *observed.Node, red, _ *observed.Port, _ *Input) { red.Node.Info.NodeType = ib.NodeRouter }, []string{"type=router"}},
		{"a link that comes up", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Ports[3].Info.PortState = smp.PortArmed }, []string{"003 state=3 "}},
		{"a line end", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Description = "a\nend 0x1\x7fé" }, []string{"name=a%0aend%200x1%7f%c3%a9\n"}},
		{"a dash", func(sw *observed.Node, _, _ *observed.Port, _ *Input) { sw.Description = "-" }, []string{"name=%2d\n"}},
	} {
		b, sw, red, blue := small()
		in := input(b, red, blue)
		x.change(sw, red, blue, &in)
		got := string(Write(in))
		for _, want := range x.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: want %q in\n%s", x.name, want, got)
			}
		}
		if strings.Contains(got, "11223344") {
			t.Errorf("%s: an M_Key is in the certificate", x.name)
		}
	}
}

// TestSign: the form of a signature; internal/judge/certificate has ssh-keygen verify one.
func TestSign(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	sig := string(Sign(key, Namespace, []byte("x")))
	if !strings.HasPrefix(sig, "-----BEGIN SSH SIGNATURE-----\nU1NIU0lH") || !strings.HasSuffix(sig, "\n-----END SSH SIGNATURE-----\n") || sig != string(Sign(key, Namespace, []byte("x"))) || sig == string(Sign(key, Namespace, []byte("y"))) {
		t.Error(sig)
	}
	if got := AllowedSigner(key); got != `ibwarden namespaces="ibwarden-certificate,ibwarden-tenant-certificate" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop` {
		t.Error(got)
	}
}

// seen is what the second host's owner is given of the fabric of TestWrite.
const seen = `ibwarden certificate 1
made 2026-01-02T03:04:05Z
expires 2026-01-09T03:04:05Z
revision 12
snapshot -
policy -
raw denied
partition 0001 others
partition 0020 blue
keys 0 8001
keys 1 8020
class 0 ports=4
class 1 ports=1
switch 0x0000000000000001 ports=1 entries=1 enforces=both filters=no key=own protect=1 lease=0 name=others
switch 0x0000000000000003 ports=1 entries=1 enforces=both filters=no key=own protect=1 lease=0 name=others
switch 0x0000000000000004 ports=0 entries=1 enforces=both filters=no key=own protect=1 lease=0 name=others
port 0x0000000000000001 001 state=4 enforce=both filter=no keys=1
port 0x0000000000000003 001 state=unread enforce=both filter=no keys=0
end 0x0000000000000001 node=0x0000000000000001 port=000 type=switch keys=0 class=0 key=unread protect=unread lease=unread name=others
end 0x0000000000000002 node=0x0000000000000002 port=001 type=ca keys=0 class=0 key=unread protect=unread lease=unread name=others
end 0x0000000000000003 node=0x0000000000000003 port=000 type=switch keys=0 class=0 key=unread protect=unread lease=unread name=others
end 0x0000000000000004 node=0x0000000000000004 port=000 type=switch keys=0 class=0 key=unread protect=unread lease=unread name=others
end 0x0000000000001021 node=0x0000000000001020 port=001 type=ca keys=1 class=1 key=own protect=2 lease=0 name=-
cable 0x0000000000000001 001 0x0000000000001020 001 unlisted
cable 0x0000000000000002 001 0x0000000000000003 001 unlisted
`

func TestTenant(t *testing.T) {
	b, _, red, blue := small()
	in := input(b, red, blue)
	in.Snapshot, in.View = nil, &View{Owns: map[ib.PortGUID]bool{blue.GUID: true}, Sees: map[ib.PKeyBase]bool{0x20: true}}
	if got, want := string(Write(in)), fmt.Sprintf("%ssha256 %x\n", seen, sha256.Sum256([]byte(seen))); got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestTenantIsToldOfGaps: what is not known of a fabric weighs on everybody.
func TestTenantIsToldOfGaps(t *testing.T) {
	lines := func(change func(b *subnettest.Builder, sw *observed.Node, in *Input)) map[string]bool {
		b, sw, red, blue := small()
		in := input(b, red, blue)
		in.View = &View{Owns: map[ib.PortGUID]bool{blue.GUID: true}}
		in.Cables = func(*observed.Port) bool { return true }
		change(b, sw, &in)
		out := map[string]bool{}
		for line := range strings.Lines(string(Write(in))) {
			out[strings.TrimSpace(line)] = true
		}
		return out
	}
	if got := lines(func(*subnettest.Builder, *observed.Node, *Input) {}); len(got) != len(strings.Split(seen, "\n")) {
		t.Errorf("without a gap: %v", got)
	}
	between := func(b *subnettest.Builder, sw *observed.Node, in *Input) {
		far := subnettest.Join(sw, b.Switch(2, "spine")).Node
		far.Ports[0].Info.MKey, far.Ports[0].Info.MKeyProtectBits = 0x1122334455667788, 1
		in.Cables = func(p *observed.Port) bool { return p.Peer == nil || p.IsEnd() || p.Peer.IsEnd() }
	}
	if got := lines(between); !got["cable 0x0000000000000005 001 0x0000000000000006 001 unlisted"] {
		t.Errorf("a cable between switches: %v", got)
	}
	up := func(_ *subnettest.Builder, sw *observed.Node, _ *Input) {
		sw.Ports[3].Info.PortState = smp.PortActive
	}
	if got := lines(up); !got["port 0x0000000000000005 001 state=unread enforce=no filter=no keys=0"] {
		t.Errorf("a port that is up: %v", got)
	}
	twice := func(b *subnettest.Builder, _ *observed.Node, _ *Input) { b.Fabric.Nodes[1].Contested = true }
	if got := lines(twice); !got["unread 0x0000000000000002 another%20device%20has%20the%20same%20GUID"] {
		t.Errorf("two devices: %v", got)
	}
}
