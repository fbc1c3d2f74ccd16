package plan_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/walk"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// TestStories compares what a manager reads and writes on fabrics that change under it, with what
// it did when the files below testdata were written.
func TestStories(t *testing.T) {
	for seed, x := range []struct {
		name, topology string
		engine         func(_ int, c *engine.Config)
	}{
		{"tree", "fattree,radix=4,levels=2", func(_ int, c *engine.Config) { c.Profile, c.LMC = protect.Tenant, ib.LMC(1) }},
		{"keyed", "fattree,radix=4,levels=2", func(_ int, c *engine.Config) { c.Profile, c.ReadAliases = protect.Strict, true; walk.Keyed(c) }},
		{"torus", "torus,x=3,y=3,hosts=1", func(_ int, c *engine.Config) { c.MKey, c.ReadLanes = 0x77, true }},
		{"held", "fattree,radix=4,levels=2", func(_ int, c *engine.Config) { c.Hold, c.ReadLanes, c.Profile = true, true, protect.Tenant }},
	} {
		t.Run(x.name, func(t *testing.T) {
			walk.Run(t, "story/"+x.name+".txt", walk.Config{Seed: uint64(400 + seed), Topology: x.topology, Steps: 60, Most: 8 * time.Second, Managers: 1, Engine: x.engine})
		})
	}
}
