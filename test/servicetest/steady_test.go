package servicetest

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// TestSteadyChangesAreProved: who makes one change after the other keeps the manager from
// carrying out none of them: an early one is proved while later ones are made.
func TestSteadyChangesAreProved(t *testing.T) {
	const most = 5000 // changes
	s, served := start(t, "sim", memoryDir(t))
	guids := hosts(t, served)
	do(t, s, provider, resource.PutPartition{Partition: resource.Partition{PKey: 1, Name: "busy"}})
	for i := range most {
		g := guids[i/2%len(guids)]
		var c resource.Change = resource.SetMembers{PKey: 1, Members: []resource.Member{{Port: g, Membership: policy.Limited}}}
		if i%2 == 1 {
			c = resource.RemoveMembers{PKey: 1, Ports: []ib.PortGUID{g}}
		}
		r, err := s.Do(t.Context(), service.Request{Change: c, By: provider, Seen: resource.Unseen})
		if err != nil {
			t.Fatal(err)
		}
		if o := s.Outcome(2); o != nil && o.State == service.Proved {
			t.Logf("revision 2 is proved at revision %d", r.Revision)
			return
		}
	}
	t.Errorf("after %d changes the manager has not carried out the first", most)
}
