package desired_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/walk"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// TestStories compares the tables that a manager wants of fabrics which change under it with
// what it wanted when the files below testdata were written.
func TestStories(t *testing.T) {
	for seed, x := range []struct {
		name, topology, policy string
		engine                 func(_ int, c *engine.Config)
	}{
		{"tree", "fattree,radix=4,levels=3", "", func(_ int, c *engine.Config) { c.Routing, c.Profile = routing.Auto, protect.Tenant }},
		{"torus", "torus,x=3,y=3,hosts=1", "", func(_ int, c *engine.Config) { c.Routing, c.LMC, c.ReadAliases = routing.Auto, ib.LMC(1), true }},
		{"keeps", "torus,x=3,y=2,hosts=2", "", func(_ int, c *engine.Config) { c.KeepRoutes, c.ReadLanes = true, true }},
		{"held", "fattree,radix=4,levels=2", "", func(_ int, c *engine.Config) { c.Hold, c.KeepRoutes = true, true }},
		{"held with another LID", "fattree,radix=4,levels=2", "", func(_ int, c *engine.Config) { c.Hold, c.KeepRoutes, c.LMC = true, true, ib.LMC(1) }},
		{"master lid", "fattree,radix=4,levels=2", "settings: {master_sm_lid: 3}\n", func(_ int, c *engine.Config) { c.Profile = protect.Tenant }},
		{"master lid held", "fattree,radix=4,levels=2", "settings: {master_sm_lid: 3}\n", func(_ int, c *engine.Config) { c.Hold, c.KeepRoutes = true, true }},
		{"levels", "fattree,radix=4,levels=2", "settings: {qos_levels: [{sl: 1, share: 30%%}], qos_enforce: true, part_enforce_switches: true, balance: tenants}\n",
			func(_ int, c *engine.Config) { c.Profile, c.ReadLanes = protect.Tenant, true }},
		{"levels on a torus", "torus,x=3,y=3,hosts=1", "settings: {qos_levels: [{sl: 1, share: 40%%}], qos_enforce: true, sm_sl: 1, m_key_lease_period: 30}\n",
			func(_ int, c *engine.Config) { c.Routing, c.MKey = routing.Auto, 0x55 }},
		{"drained", "fattree,radix=4,levels=2", "settings: {drain: [L4, nowhere], link_width: 1x, m_key_protection_level: 1}\n", func(_ int, c *engine.Config) { c.Profile = protect.Strict; walk.Keyed(c) }},
		{"drained held", "fattree,radix=4,levels=2", "settings: {drain: [L4]}\n", func(_ int, c *engine.Config) { c.Hold, c.KeepRoutes = true, true }},
	} {
		t.Run(x.name, func(t *testing.T) {
			walk.Run(t, "story/"+x.name+".txt", walk.Config{Seed: uint64(700 + seed), Topology: x.topology, Policy: x.policy, Steps: 40, Most: 4 * time.Second, Managers: 1, Engine: x.engine})
		})
	}
}
