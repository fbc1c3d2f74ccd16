package simtest

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// What a fabric cannot do is said, by name, before anything is written; of a
// fabric that can do everything nothing is said, nor without a profile.
func TestWhatAFabricCannotDo(t *testing.T) {
	list := topology.Demo()
	weaken := map[string]func(*sma.Config){
		"leaf-1": func(c *sma.Config) { c.Switch.PartitionEnforcementCap = 0 },
		"leaf-2": func(c *sma.Config) { c.Switch.InboundEnforcementCap = false },
		"leaf-3": func(c *sma.Config) { c.Switch.PartitionEnforcementCap = 1 },
	}
	for _, profile := range []protect.Profile{protect.None, protect.Tenant} {
		for _, weak := range []bool{false, true} {
			s := setup{list: list, policy: halves(hosts(list)).policy(), manager: engine.Config{Profile: profile}}
			if weak {
				s.fabric.Profile = func(n *topology.Node, c *sma.Config) {
					if change := weaken[n.ID]; change != nil {
						change(c)
					}
				}
			}
			w := newWorld(t, s)
			w.until("the first write or the end", func() bool { return len(w.sets()) > 0 || w.engine.Settled() })
			var said []string
			for _, e := range all[event.Warned](w) {
				if strings.Contains(e.Text, "profile ") {
					said = append(said, e.Text)
				}
			}
			if want := weak && profile != protect.None; !want {
				if len(said) > 0 {
					t.Errorf("%v, weak %v: %q", profile, weak, said)
				}
				continue
			}
			all := strings.Join(said, "\n")
			for _, words := range []string{
				"leaf-1:1", "and 1 more: the switch has no P_Key tables", "leaf-2:1", "cannot check incoming packets", "leaf-3:1", "(1 entries, 2 needed)",
			} {
				if !strings.Contains(all, words) {
					t.Errorf("%q is not said before the first write:\n%s", words, all)
				}
			}
		}
	}
}
