package views

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// A tenant's map has the devices with an end port of its own, by what those ports are, and cables
// between two of them: not a foreign device, switch or cable, not the LID or the state of a foreign
// port at a device of both, and not what is in its partitions.
func TestOwnMap(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(8, "leaf")
	red, blue, zinc := b.Host(leaf, "red"), b.Host(leaf, "blue"), b.Host(leaf, "zinc")
	both := b.Node(ib.NodeCA, 2, "both") // the first port is blue's, and down
	subnettest.Cable(&both.Ports[2], subnettest.Free(leaf))
	alone, other, theirs := b.Host(nil, "alone"), b.Host(nil, "other"), b.Host(nil, "theirs")
	subnettest.Cable(alone, other) // no switch between
	cross := b.Node(ib.NodeCA, 1, "cross")
	subnettest.Cable(&cross.Ports[1], theirs)
	s := storetest.NewState(t, red.GUID, blue.GUID, zinc.GUID)
	give := func(tenant string, ports ...*observed.Port) {
		for _, p := range ports {
			s.Do(resource.Provider, resource.AssignPorts{Tenant: tenant, Ports: []resource.Port{{GUID: p.GUID}}})
		}
	}
	give("red", &both.Ports[2], alone, other, &cross.Ports[1])
	give("blue", &both.Ports[1], theirs)
	s.Ask("red", 0x100, blue.GUID)
	s.Ask("blue", 0x100, blue.GUID)     // a member of red's partition, which both agreed to
	s.Ask("red", 0x100, zinc.GUID)      // one that waits
	blue.Info.PortState = smp.PortArmed // what a map would say of it
	for tenant, want := range map[string]string{
		"red":  "[red both alone other cross] [active active active active active] [2 6 7 8 10] 1",
		"blue": "[blue both theirs] [inactive down active] [3 5 9] 0",
		"zinc": "[zinc] [active] [4] 0",
		"none": "[] [] [] 0",
	} {
		f := &MapFacts{Snapshot: &snapshot.Snapshot{Fabric: b.Fabric}}
		f.Gather(s.State, storetest.By(tenant))
		m := f.own(tenant)
		f.Racks = northHall(t)
		if named := f.own(tenant); !reflect.DeepEqual(named, m) {
			t.Errorf("%s: with a file of racks %+v, want %+v", tenant, named, m)
		}
		states := make([]string, len(m.Nodes.State))
		for i, x := range m.Nodes.State {
			states[i] = m.States[x]
		}
		if got := fmt.Sprint(m.Nodes.Name, states, m.Nodes.LID, len(m.Links.A)); got != want {
			t.Errorf("%s: %s, want %s", tenant, got, want)
		}
		if len(m.Nodes.Name) > 0 && (!slices.Equal(m.Owners, []string{tenant}) || !slices.Equal(m.Parties, []string{tenant}) || len(m.Groups) != 1 || m.Groups[0].Name != "") {
			t.Errorf("%s: %v %v %v", tenant, m.Owners, m.Parties, m.Groups)
		}
	}
}
