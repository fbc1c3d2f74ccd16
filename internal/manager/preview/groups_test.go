package preview

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

func TestGroupChanges(t *testing.T) {
	mgid := func(n byte) ib.GID { return ib.GID{0: 0xFF, 1: 0x12, 15: n} }
	made := func(n byte, base ib.PKeyBase, fixed bool, mtu ib.MTU, members ...ib.PortGUID) group.Group {
		g := group.Group{MGID: mgid(n), Partition: base, Fixed: fixed, Settings: group.Settings{MTU: mtu}}
		for _, m := range members {
			g.Members = append(g.Members, group.Member{Port: m, State: sa.JoinFull})
		}
		return g
	}
	now := []group.Group{
		made(1, 1, true, ib.MTU2048, 10, 11), // as it was
		made(2, 1, true, ib.MTU2048, 10, 12), // other settings, 12 goes
		made(3, 2, true, ib.MTU2048, 20),     // its partition goes
		made(4, 1, false, ib.MTU2048, 10, 12),
		made(5, 1, true, ib.MTU2048, 10), // not in the policy any more, has a member
		made(6, 1, true, ib.MTU2048),     // the same without
		made(7, 1, true, ib.MTU2048, 10), // goes to another partition
	}
	var p Preview
	p.groups(&Input{
		Multicast: &group.State{Groups: now},
		Partitions: []observed.Partition{
			{Name: "red", Base: 1, Full: []ib.PortGUID{10}, Limited: []ib.PortGUID{11}, Multicast: []group.Group{made(1, 1, true, ib.MTU2048), made(2, 1, true, ib.MTU4096)}},
			{Name: "green", Base: 3, Multicast: []group.Group{made(7, 3, true, ib.MTU2048), made(8, 3, true, ib.MTU2048)}},
		},
	})
	type line struct {
		n         byte
		partition string
		what      string
		leave     int
	}
	var got []line
	for _, c := range p.Multicast {
		if c.Text == "" {
			t.Errorf("nothing is said of %s", c.MGID)
		}
		got = append(got, line{c.MGID[15], c.Partition, c.What, c.Leave})
	}
	want := []line{
		{2, "red", GroupChanged, 1}, {3, "0x0002", GroupRemoved, 1}, {4, "red", GroupShrinks, 1},
		{5, "red", GroupChanged, 0}, {6, "red", GroupRemoved, 0}, {7, "red", GroupRemoved, 1}, {8, "green", GroupAdded, 0},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	p.groups(&Input{})
	if len(p.Multicast) != 0 {
		t.Error("something is said of groups that nobody knows")
	}
}
