package listen

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// That a member was removed is told to the owner of the partition, that of the port and the provider:
// whoever else names it is answered as of any other port.
func TestWhoIsToldOfARemoval(t *testing.T) {
	s := storetest.NewState(t, 1, 2, 3)
	s.Ask("red", 0x100, 2)
	s.Ask("red", 0x100, 3)
	s.Ask("blue", 0x100, 2)
	s.Remove("red", 0x100, 2)
	any, given := Condition{Given: true, any: true}, Condition{Given: true, match: []uint64{s.Last()}}
	for _, x := range []struct {
		tenant string
		c      Condition
		port   ib.PortGUID
		told   bool
	}{
		{"red", Condition{}, 2, true}, {"red", any, 2, true}, {"red", given, 2, false}, {resource.Provider, Condition{}, 2, true},
		{"zinc", Condition{}, 2, false}, // who is asked for a port of its own in the partition
		{"zinc", any, 2, false}, {"none", Condition{}, 2, false}, {"red", Condition{}, 1, false}, {"red", Condition{}, 77, false},
		{"blue", Condition{}, 2, false}, // it sees nothing of the partition any more
	} {
		err := x.c.Returning(s.State, storetest.By(x.tenant), 0x100, []resource.Member{{Port: x.port}})
		if (err != nil) != x.told {
			t.Errorf("%s of port %v: %v, want that it is told: %v", x.tenant, x.port, err, x.told)
		}
	}
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 4}}})
	s.Ask("red", 0x100, 4)
	if err := (Condition{}).Returning(s.State, storetest.By("blue"), 0x100, []resource.Member{{Port: 2}}); err == nil {
		t.Error("blue, who sees the partition, is not told that its port was removed from it")
	}
	if err := (Condition{}).Returning(s.State, storetest.By("red"), 0x100, []resource.Member{{Port: 4}}); err != nil {
		t.Errorf("a member that is there: %v", err)
	}
}
