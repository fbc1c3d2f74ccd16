package partition

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

func TestHoldsAndAllows(t *testing.T) {
	table := Table{0, 0x8010, 0x0020, 0x8000}
	for _, x := range []struct {
		k              ib.PKey
		holds, allowed bool
	}{{0x8010, true, true}, {0x0010, true, true}, {0x0020, true, true}, {0x8020, true, false}, {0x8030, false, false}, {0x0030, false, false}} {
		if got := table.Holds(x.k.Base()); got != x.holds {
			t.Errorf("%v: held %v", x.k, got)
		}
		if got := table.Allows(x.k); got != x.allowed {
			t.Errorf("%v: allowed %v", x.k, got)
		}
	}
	if table.Holds(0) || (Table)(nil).Holds(0x10) || (Table)(nil).Allows(0x10) {
		t.Error("an empty entry is a key")
	}
}

// TestMessages compares what is said of each port for which a policy has no room.
func TestMessages(t *testing.T) {
	var seventeen []string
	for i := range namesMax + 1 {
		seventeen = append(seventeen, fmt.Sprint("p", i))
	}
	o := Overflow{PortGUID: 1, NodeGUID: 2, PortNum: 3, Cap: 4, Needed: 6, Partitions: []string{"red", "blue"}}
	guard, manager, many, most := o, o, o, o
	guard.Guard, manager.Manager, many.Partitions, most.Partitions = "leaf:1", true, seventeen, seventeen[:namesMax]
	const port = "port 0x0000000000000001 (node 0x0000000000000002 port 3): "
	for _, x := range []struct {
		o    Overflow
		want string
	}{
		{o, port + "the P_Key table holds 4 keys, the policy needs 6: take the port out of 2 of red, blue"},
		{guard, port + "the P_Key table of leaf:1 before it holds 4 keys, the policy needs 6: take the port out of 2 of red, blue"},
		{manager, "the manager's " + port + "without a default partition it is in every partition, and its P_Key table holds 4; the policy has 6: take 2 of them out (red, blue), or run the manager at a port with a larger table"},
		{many, port + "the P_Key table holds 4 keys, the policy needs 6: take the port out of 2 of " + strings.Join(seventeen[:namesMax], ", ") + " and 1 more"},
		{most, port + "the P_Key table holds 4 keys, the policy needs 6: take the port out of 2 of " + strings.Join(seventeen[:namesMax], ", ")},
	} {
		if got := x.o.String(); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
	index := Index0Conflict{PortGUID: 1, Partitions: []string{"red (0x8010)", "blue (0x0020)"}}
	const claimed = "index 0 is claimed by red (0x8010) and by blue (0x0020): only one of them can have it"
	if got := index.String(); got != "port 0x0000000000000001: "+claimed {
		t.Errorf("%q", got)
	}
	index.NodeGUID, index.PortNum = 2, 3
	if got := (&Error{[]Overflow{o}, []Index0Conflict{index}}).Error(); got != o.String()+"\n"+port+claimed {
		t.Errorf("%q", got)
	}
}

// TestVetIndex0 finds the ports whose index 0 two partitions claim, in the order of their GUIDs.
func TestVetIndex0(t *testing.T) {
	r := &policy.Resolution{Partitions: []observed.Partition{
		{Name: "red", Base: 0x10, Full: []ib.PortGUID{9}, Index0: []ib.PortGUID{9, 5}},
		{Name: "blue", Base: 0x20, Full: []ib.PortGUID{5}, Index0: []ib.PortGUID{5, 7}},
	}}
	if err := VetIndex0(&policy.Resolution{Partitions: r.Partitions[:1]}); err != nil {
		t.Errorf("one partition: %v", err)
	}
	const five = "port 0x0000000000000005: index 0 is claimed by red (0x0010) and by blue (0x8020): only one of them can have it"
	if err := VetIndex0(r); err == nil || err.Error() != five {
		t.Errorf("%v, want %q", err, five)
	}
	r.Partitions = append(r.Partitions, observed.Partition{Name: "green", Base: 0x30, Index0: []ib.PortGUID{7}})
	if err := VetIndex0(r); err == nil || !slices.Equal(strings.Split(err.Error(), "\n"), []string{five, "port 0x0000000000000007: index 0 is claimed by blue (0x0020) and by green (0x0030): only one of them can have it"}) {
		t.Errorf("%v", err)
	}
}
