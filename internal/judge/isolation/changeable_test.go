package isolation

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// lock gives every end port an M_Key of its own that nobody can read.
func lock(f *observed.Fabric) {
	for i, p := range f.EndPorts() {
		p.Info.MKey, p.Info.MKeyProtectBits, p.Info.MKeyLeasePeriod = ib.MKey(0x9000+i), 2, 0
	}
}

func onList(*observed.Port) bool { return true }

// A proof is as good as what keeps a host from changing what was proved: each
// gap is found at its place, and what is isolated is then no more than
// isolated-unguarded; what is worse stays worse.
func TestChangeable(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *site)
		cables Cables
		want   []string // places, and words of the reason of all of them
		words  string
	}{
		{"nothing open", func(*site) {}, onList, nil, ""},
		{"no list", func(*site) {}, nil, []string{"spine:1", "spine:2", "leaf0:5", "leaf1:5"}, "no list of cables"},
		{"one cable too many", func(*site) {}, func(p *observed.Port) bool { return p.String() != "spine:2" }, []string{"spine:2"}, "not on the list"},
		{"a host without a key", func(s *site) { s.hosts[3].Info.MKey, s.hosts[3].Info.MKeyProtectBits = 0, 0 }, onList, []string{"h3"}, "M_Key is 0"},
		{"a switch without a key", func(s *site) { p := &s.leaves[1].Ports[0]; p.Info.MKey, p.Info.MKeyProtectBits = 0, 0 }, onList, []string{"leaf1:0"}, "M_Key is 0"},
		{"a key that is hidden from the reader", func(s *site) { s.hosts[0].Info.MKey = 0 }, onList, []string{"h0"}, "was not read"},
		{"a key that is shown", func(s *site) { s.hosts[0].Info.MKeyProtectBits = 0 }, onList, []string{"h0"}, "shows its M_Key"},
		{"one key for two", func(s *site) { s.hosts[0].Info.MKey = s.hosts[5].Info.MKey }, onList, []string{"h0", "h5"}, "same M_Key"},
		{"a lease", func(s *site) { s.leaves[0].Ports[0].Info.MKeyLeasePeriod = 60 }, onList, []string{"leaf0:0"}, "M_KeyLeasePeriod"},
		{"a fenced host without a key", func(s *site) {
			subnettest.SetPKeys(s.hosts[2].Peer)
			s.hosts[2].Info.MKey, s.hosts[2].Info.MKeyProtectBits = 0, 0
		}, onList, nil, ""},
		{"a cable where keys are checked", func(s *site) {
			for _, p := range []*observed.Port{&s.spine.Ports[1], s.spine.Ports[1].Peer} {
				subnettest.SetPKeys(p, baseRed.Full())
				p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = true, true
			}
		}, func(*observed.Port) bool { return false }, []string{"spine:2", "leaf1:5"}, "not on the list"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSite()
			lock(s.f)
			test.change(s)
			found := Changeable(s.f, test.cables)
			var at []string
			for _, x := range found {
				at = append(at, x.Name)
				if !strings.Contains(x.Reason, test.words) {
					t.Errorf("%s: %q, want %q in it", x.Name, x.Reason, test.words)
				}
			}
			slices.Sort(at)
			slices.Sort(test.want)
			if !slices.Equal(at, test.want) {
				t.Fatalf("found %v, want %v", at, test.want)
			}
			p := Prove(s.f, s.allowed)
			if p.Verdict != Isolated {
				t.Fatalf("by its tables %v: %v", p.Verdict, p.Reasons)
			}
			p.Rest(found)
			if want := Isolated; len(test.want) > 0 {
				want = Unguarded
				if p.Verdict != want || len(p.Reasons) == 0 || p.Counts.Changeable != len(test.want) || len(p.Changeable) != len(test.want) {
					t.Errorf("%v because of %v, %d places", p.Verdict, p.Reasons, p.Counts.Changeable)
				}
			} else if p.Verdict != want || len(p.Reasons) != 0 {
				t.Errorf("%v because of %v", p.Verdict, p.Reasons)
			}
		})
	}
	s := newSite()
	subnettest.SetPKeys(s.hosts[0], baseBlue.Full())
	p := Prove(s.f, s.allowed)
	p.Rest(Changeable(s.f, nil))
	if p.Verdict != Violated {
		t.Errorf("a violation of open ports is %v", p.Verdict)
	}
}

// Entries beyond what is read of an end port's table are unknown, never fine.
func TestTableCutShort(t *testing.T) {
	s := newSite()
	s.hosts[0].Node.Info.PartitionCap = 65535
	s.hosts[0].PKeysRead = make([]bool, s.hosts[0].PKeyBlocks())
	for i := range s.hosts[0].PKeysRead {
		s.hosts[0].PKeysRead[i] = true
	}
	s.hosts[0].PKeys = append(s.hosts[0].PKeys, make([]ib.PKey, s.hosts[0].PKeyCap()-len(s.hosts[0].PKeys))...)
	if p := Prove(s.f, s.allowed); p.Verdict != Unknown {
		t.Errorf("a table of which a part was read: %v", p.Verdict)
	}
}
