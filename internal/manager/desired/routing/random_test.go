package routing

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

func entry(lid ib.LID, lmc ib.LMC, port ib.PortNum) smp.RandomEntry {
	return smp.RandomEntry{LID: lid, Valid: true, LMC: lmc, Port: port}
}

func TestRFT(t *testing.T) {
	const none = ib.PortNone
	for _, c := range []struct {
		name        string
		linear      []ib.PortNum // by LID
		capacity    int
		want        []smp.RandomEntry
		defaultPort ib.PortNum
		err         string
	}{
		{"empty", []ib.PortNum{none}, 4, nil, none, ""},
		{"one LID each", []ib.PortNum{none, 0, 3, 4}, 4, []smp.RandomEntry{entry(1, 0, 0), entry(2, 0, 3), entry(3, 0, 4)}, none, ""},
		{"runs are joined", []ib.PortNum{none, 5, 5, 5, 5, 5, 5, 5, 6}, 4,
			[]smp.RandomEntry{entry(1, 0, 5), entry(2, 1, 5), entry(4, 2, 5), entry(8, 0, 6)}, none, ""},
		{"gaps are not covered", []ib.PortNum{none, none, 5, none, 5, 5, none, 5}, 4,
			[]smp.RandomEntry{entry(2, 0, 5), entry(4, 1, 5), entry(7, 0, 5)}, none, ""},
		{"LID 0 is not covered", []ib.PortNum{5, 5}, 1, []smp.RandomEntry{entry(1, 0, 5)}, none, ""},
		{"exactly full", []ib.PortNum{none, 1, 2, 1, 2}, 4,
			[]smp.RandomEntry{entry(1, 0, 1), entry(2, 0, 2), entry(3, 0, 1), entry(4, 0, 2)}, none, ""},
		{"default port when short", []ib.PortNum{none, 0, 2, 1, 2, 1, 2}, 3,
			[]smp.RandomEntry{entry(1, 0, 0), entry(3, 0, 1), entry(5, 0, 1)}, 2, ""},
		{"port 0 is no default", []ib.PortNum{none, 0, 1, 0, 2, 0}, 4,
			[]smp.RandomEntry{entry(1, 0, 0), entry(3, 0, 0), entry(4, 0, 2), entry(5, 0, 0)}, 1, ""},
		{"too short", []ib.PortNum{none, 0, 1, 2, 1, 3}, 2, nil, none, "needs 5 entries, 3 with port 1 as the default port, and has 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, defaultPort, err := RFT(c.linear, c.capacity)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" || defaultPort != c.defaultPort {
				t.Errorf("default port %d, want %d; entries (-want +got):\n%s", defaultPort, c.defaultPort, d)
			}
		})
	}
}

// Whatever the table, the entries send every routed LID where it belongs, no
// two of them cover the same LID, and they stay within the capacity.
func TestRFTSendsWhereTheLinearTableDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		linear := []ib.PortNum{ib.PortNone}
		for range rapid.IntRange(1, 30).Draw(t, "runs") {
			port := rapid.SampledFrom([]ib.PortNum{0, 1, 2, 3, 254, ib.PortNone}).Draw(t, "port")
			for range rapid.IntRange(1, 40).Draw(t, "length") {
				linear = append(linear, port)
			}
		}
		capacity := rapid.IntRange(0, 150).Draw(t, "capacity")
		entries, defaultPort, err := RFT(linear, capacity)
		if err != nil {
			return
		}
		if len(entries) > capacity {
			t.Fatalf("%d entries, capacity %d", len(entries), capacity)
		}
		for lid, want := range linear {
			got, covers := defaultPort, 0
			for _, e := range entries {
				if e.Covers(ib.LID(lid)) {
					got = e.Port
					covers++
				}
			}
			if covers > 1 || lid > 0 && want != ib.PortNone && got != want {
				t.Fatalf("LID %d leaves by port %d (%d entries), want %d", lid, got, covers, want)
			}
		}
	})
}

// LF-03: a switch has a linear or a random table, and never gets both.
func TestLF03EachSwitchGetsTheTableItHas(t *testing.T) {
	b := routingtest.New(nil)
	linear, short, random, full, none := b.Switch(9, "linear"), b.Switch(9, "short"), b.Switch(9, "random"), b.Switch(9, "full"), b.Switch(9, "none")
	for _, s := range []*observed.Node{short, random, full, none} {
		subnettest.Join(linear, s)
		s.Switch.Info.LinearFDBCap = 0
	}
	b.Hosts(linear, 1)
	b.Hosts(full, 1)
	short.Switch.Info.LinearFDBCap = 4
	random.Switch.Info.RandomFDBCap = 20
	full.Switch.Info.RandomFDBCap = 1
	random.Switch.Info.DefaultPort = 3

	tables := compute(t, b, UpDown)
	d := observed.NewDesired(b.Fabric)
	err := tables.Enter(b.Fabric, d)
	const want = "short: the linear forwarding table ends at LID 3, LIDs go up to 7\n" +
		"full: the random forwarding table needs 6 entries, 2 with port 1 as the default port, and has 1\n" +
		"none: the switch has no unicast forwarding table"
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
	if got := d.Nodes[linear.Index].LFT; !slices.Equal(got, tables.Linear[linear.Index]) || len(got) != 8 {
		t.Errorf("linear: %v", got)
	}
	if got := d.Nodes[short.Index]; !slices.Equal(got.LFT, tables.Linear[short.Index][:4]) || got.RFT != nil {
		t.Errorf("short: %+v", got)
	}
	got := d.Nodes[random.Index]
	if got.LFT != nil || len(got.RFT) != 20 || got.DefaultPort != ib.PortNone {
		t.Errorf("random: %d LIDs, %d entries, default port %d", len(got.LFT), len(got.RFT), got.DefaultPort)
	}
	for lid, port := range tables.Linear[random.Index] {
		for _, e := range got.RFT {
			if e.Covers(ib.LID(lid)) && e.Port != port {
				t.Errorf("random: LID %d leaves by port %d, want %d", lid, e.Port, port)
			}
		}
	}
	for _, s := range []*observed.Node{full, none} {
		if got := d.Nodes[s.Index]; got.LFT != nil || got.RFT != nil {
			t.Errorf("%s: %+v", s.Name(), got)
		}
	}
}
