package simtest

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// A subnet with more end ports than LIDs is refused by what needs how many, before anything is
// written, M_Keys included; with fewer for each it comes up.
func TestTooFewLIDs(t *testing.T) {
	list := generate(t, "fattree,radix=30") // 450 hosts
	for lmc, want := range map[ib.LMC]string{
		7: "450 end ports with 128 LIDs each (LMC 7) and 45 switches need 57645 unicast LIDs, and a subnet has 49151: take LMC 6 or less",
		2: "",
	} {
		for name, c := range map[string]engine.Config{"M_Keys": keyed(), "none": {}} {
			c.LMC = lmc
			w := newWorld(t, setup{list: list, policy: &policy.Policy{Default: policy.Full}, manager: c})
			w.settle()
			refused := all[event.Refused](w)
			if want == "" {
				if len(refused) > 0 || !w.result().Reached() {
					t.Errorf("%s, LMC %d: refused %v", name, lmc, refused)
				}
				continue
			}
			if len(refused) != 1 || !strings.Contains(refused[0].Err.Error(), want) {
				t.Errorf("%s, LMC %d: refused %v, want %q", name, lmc, refused, want)
			}
			if sets := w.packets(mad.MethodSet); len(sets) > 0 {
				t.Errorf("%s, LMC %d: %d Sets, the first of %v", name, lmc, len(sets), sets[0].AttributeID)
			}
		}
	}
}
