package observed_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// Both formats: OpenSM's dump, and what ibroute prints.
func TestParse(t *testing.T) {
	const text = `# a comment
Unicast lids [0x0-0x3] of switch Lid 2 guid 0x0002c90000000010 ('leaf guid 0x5'):
0x0001 003 # Channel Adapter portguid 0x0002c90000000001: 'host portguid 0x9'
0x0002 000 # Switch portguid 0x0002c90000000010: 'leaf'
2 lids dumped

Unicast lids [0x0-0x3] of switch Lid 3 guid 0x0002c90000000020 (spine):
  Lid  Out   Destination
       Port     Info
0x0001 004 : (Channel Adapter portguid 0x0002c90000000001: 'host')
0x0007 255 # unknown node and type
2 valid lids dumped
`
	got, err := observed.ParseLFTs(strings.NewReader(text))
	want := &observed.LFTs{
		Switches: []observed.LFTSwitch{{0x2c90000000010, 2, []observed.LFTEntry{{1, 3}, {2, 0}}}, {0x2c90000000020, 7, []observed.LFTEntry{{1, 4}, {7, 255}}}},
		Owners:   map[ib.LID]ib.PortGUID{1: 0x2c90000000001, 2: 0x2c90000000010},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "Unicast lids [0x0-0x3] of switch Lid 2 guid 0x10 ('leaf'):\n"
	for text, want := range map[string]string{
		"":                               "has none",
		"0x0001 003\n":                   "line 1: \"0x0001 003\": want `Unicast lids",
		"Unicast lids of a switch\n":     "the GUID of the switch",
		head + "0x0000 003\n":            "line 2: \"0x0000 003\": want a unicast LID",
		head + "0xc000 003\n":            "a unicast LID",
		head + "0x10000 003\n":           "a unicast LID",
		head + "0x0001 256\n":            "the exit port after the LID",
		head + "0x0001 x\n":              "the exit port after the LID",
		head + "0x0001\n":                "the exit port after the LID",
		head + "0x0001 1\n0x0001 2\n":    "line 3: \"0x0001 2\": want each LID once",
		head + head:                      "line 2: ",
		head + "hello\n":                 "line 2: \"hello\": want",
		"Multicast mlids [0xc000] ...\n": "these are multicast ones",
		head + "0x1 1 # portguid 0x5:\n0x2 1 # portguid 0xzz\n":                           "a GUID after portguid",
		head + "0x1 1 # portguid 0x5:\nUnicast lids guid 0x11 x\n0x1 1 # portguid 0x6:\n": "one port for LID 0x1",
		head + strings.Repeat("x", 2*observed.MaxLine):                                    "a line of at most 4096 bytes",
		head + strings.Repeat("\x1b[2J", 500) + "\n":                                      `line 2: "\x1b[2J`,
	} {
		_, err := observed.ParseLFTs(strings.NewReader(text))
		var wrong *observed.LFTError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 600 {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// What is written is read back, whatever devices call themselves.
func TestWriteIsRead(t *testing.T) {
	b := subnettest.New()
	leaf, spine := b.Switch(4, "leaf'\n0x0001 004 # x"), b.Switch(4, "Unicast lids guid 0x7 ")
	subnettest.Join(leaf, spine)
	b.Host(leaf, "a\nUnicast lids [0x0-0x3] of switch Lid 2 guid 0x10 ('x'):")
	b.Host(spine, "b' portguid 0x5: \x1b[2J")
	b.Route()
	var out bytes.Buffer
	unread, err := observed.WriteLFTs(&out, b.Fabric)
	if err != nil || unread != 0 || strings.Contains(out.String(), "\x1b") {
		t.Fatalf("%d, %v: %q", unread, err, out.String())
	}
	got, err := observed.ParseLFTs(&out)
	if err != nil || len(got.Switches) != 2 {
		t.Fatalf("%v: %+v", err, got)
	}
	for _, s := range got.Switches {
		n := b.Fabric.Node(s.GUID)
		if n == nil || len(s.Entries) != 4 {
			t.Fatalf("%+v", s)
		}
		for _, e := range s.Entries {
			if n.Switch.LFT[e.LID] != e.Port {
				t.Errorf("%s: LID %d by port %d, want %d", n.Name(), e.LID, e.Port, n.Switch.LFT[e.LID])
			}
		}
	}
	for _, p := range b.Fabric.EndPorts() {
		if got.Owners[p.Info.LID] != p.GUID {
			t.Errorf("LID %d is of %s", p.Info.LID, got.Owners[p.Info.LID])
		}
	}
	leaf.Switch.LFTRead[0] = false
	if unread, _ := observed.WriteLFTs(&out, b.Fabric); unread != 1 {
		t.Errorf("%d unread, want 1", unread)
	}
}
