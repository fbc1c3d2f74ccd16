package preview

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

func printed(t *testing.T, p *Preview) string {
	t.Helper()
	var w strings.Builder
	if err := p.Print(&w); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(w.String(), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestPrint compares all that is said of a plan with what has to be said.
func TestPrint(t *testing.T) {
	p := &Preview{
		Changes: true,
		Ports: []Port{
			{Node: "red-1", Num: 1, PortGUID: 0x11, Role: "end port", Peer: "leaf:1", Cap: 32, Before: 2, After: 3,
				Keys:    []Key{{Added, 2, 0x8010, 0, 0}, {Removed, 1, 0x0020, 0, 0}, {Moved, 0, 0xFFFF, 0, 4}, {Membership, 3, 0x8030, 0x0030, 0}},
				Aliases: []Alias{{Added, 1, 0xA1}}},
			{Node: "leaf", Num: 1, Role: "switch port", Peer: "red-1\x1b[2J", Cap: 8, Before: 1, After: 1,
				Enforcement: []Enforcement{{"inbound", true}, {"outbound", false}}, RawFilters: []Enforcement{{"inbound", true}}},
			{Node: "leaf", Num: 2, Role: "switch port", Cap: 8, After: 1, Keys: []Key{{Added, 0, 0x8010, 0, 0}}},
		},
		SMPs:     SMPs{Set: 5, ReadBack: 4, ByAttribute: []Attribute{{"PKeyTable", 3, 3}, {"PortInfo", 2, 1}}},
		Capacity: Capacity{EndPorts: &Room{"red-1", 32, 29}, SwitchPorts: &Room{"leaf:1", 8, 7}},
		Reach: Reach{PairsBefore: 3, PairsAfter: 4, Gained: 2, Lost: 1, Groups: []GroupPair{
			{A: "red", B: "blue", Gained: 1, Opened: true, Over: []ib.PKeyBase{0x10, 0x20}, Example: [2]string{"red-1", "blue-1"}},
			{A: "a", B: "b", Lost: 1, Closed: true}, {A: "c", B: "d", Gained: 1, Lost: 1}, {A: "e", B: "f", Gained: 1}, {A: "g", B: "h", Lost: 1},
		}},
		Multicast: []GroupChange{{MGID: ib.GID{0: 0xFF, 15: 1}, Partition: "red", Text: "2 members leave"}},
		Findings:  []Finding{{Kind: "isolated", Text: "x\ny"}, {Kind: "full", Text: "z", Already: true}},
	}
	want := `PORT ROLE INDEX CHANGE P KEY WAS USED CAPACITY
red-1:1 end port 2 added 0x8010 - 3, was 2 32
red-1:1 end port 1 removed 0x0020 - 3, was 2 32
red-1:1 end port 0 moved 0xffff index 4 3, was 2 32
red-1:1 end port 3 membership 0x8030 0x0030 3, was 2 32
red-1:1 end port 1 alias added 0x00000000000000a1 - - -
leaf:1 switch port to red-1?[2J - check inbound on - - 1 8
leaf:1 switch port to red-1?[2J - check outbound off - - 1 8
leaf:1 switch port to red-1?[2J - raw filter inbound on - - 1 8
leaf:2 switch port 0 added 0x8010 - 1, was 0 8

TO SEND SET READ BACK
PKeyTable 3 3
PortInfo 2 1
all 5 4

room left: at least 29 of 32 entries in the table of every end port (red-1)
room left: at least 7 of 8 entries in the table of every switch port that faces one (leaf:1)
pairs of ports that can talk: 3 before, 4 after (2 gained, 1 lost)

GROUP AND PAIRS GAINED PAIRS LOST P KEY EXAMPLE EFFECT
red blue 1 0 0x0010 0x0020 red-1 - blue-1 can talk, could not before
a b 0 1 - - cannot talk any more
c d 1 1 - - some more can talk, some cannot any more
e f 1 0 - - more can talk
g h 0 1 - - fewer can talk

multicast group ff00::1 of red: 2 members leave
isolated: x?y
full: z (as before)
`
	if got := printed(t, p); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := printed(t, &Preview{}), "nothing to change: the fabric is as the policy wants it\npairs of ports that can talk: 0 before, 0 after (0 gained, 0 lost)\n"; got != want {
		t.Errorf("of no change: %q", got)
	}
}

// TestPrintIsBounded: 60 rows of a table are shown and 20 of the rest, whatever they are rows of; how many
// more there are is said.
func TestPrintIsBounded(t *testing.T) {
	const more = "(--json has all)"
	for _, x := range []struct {
		name     string
		max      int
		make     func(n int) *Preview
		row, end string
	}{
		{"keys", planRowsMax, func(n int) *Preview { return &Preview{Ports: []Port{{Node: "p", Keys: make([]Key, n)}}} }, "p:0 ", "and %d more "},
		{"aliases", planRowsMax, func(n int) *Preview { return &Preview{Ports: []Port{{Node: "p", Aliases: make([]Alias, n)}}} }, "p:0 ", "and %d more "},
		{"checks", planRowsMax, func(n int) *Preview {
			return &Preview{Ports: []Port{{Node: "p", Enforcement: make([]Enforcement, n)}}}
		}, "p:0 ", "and %d more "},
		{"raw filters", planRowsMax, func(n int) *Preview {
			return &Preview{Ports: []Port{{Node: "p", RawFilters: make([]Enforcement, n)}}}
		}, "p:0 ", "and %d more "},
		{"groups", planRowsMax, func(n int) *Preview {
			return &Preview{Reach: Reach{Groups: make([]GroupPair, n)}}
		}, "- - 0 0 ", "and %d more "},
		{"multicast", planFindingsMax, func(n int) *Preview { return &Preview{Multicast: make([]GroupChange, n)} }, "multicast group ", "and %d more multicast groups "},
		{"findings", planFindingsMax, func(n int) *Preview {
			p := &Preview{}
			for range n {
				p.Findings = append(p.Findings, Finding{Kind: "kind"})
			}
			return p
		}, "kind:", "and %d more "},
	} {
		for _, over := range []int{0, 1, 3} {
			got, end := printed(t, x.make(x.max+over)), ""
			if over > 0 {
				end = fmt.Sprintf(x.end, over) + more
			}
			if n := strings.Count("\n"+got, "\n"+x.row); n != x.max || !strings.Contains(got, end) || over == 0 && strings.Contains(got, more) {
				t.Errorf("%s, %d more than are shown: %d rows, want %d and %q:\n%s", x.name, over, n, x.max, end, got)
			}
		}
	}
}
