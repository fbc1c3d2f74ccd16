package engine_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/walk"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// TestStoriesOfSettings is TestStories with a LID of the master, shared links and more that a
// policy sets, for managers that take over from each other.
func TestStoriesOfSettings(t *testing.T) {
	for seed, x := range []struct {
		name, policy string
		managers     int
		engine       func(i int, c *engine.Config)
	}{
		{"master lid alone", "settings: {master_sm_lid: 77}\n", 1, func(_ int, c *engine.Config) { c.Profile = protect.Tenant }},
		{"master lid", "settings: {master_sm_lid: 77}\n", 2, func(_ int, c *engine.Config) {
			c.Profile, c.Election.AcceptPolicy = protect.Tenant, true
			walk.Keyed(c)
		}},
		{"master lid believed", "settings: {master_sm_lid: 77}\n", 2, nil},
		{"one key", "", 1, func(_ int, c *engine.Config) { c.Profile, c.MKey = protect.Tenant, 0x99 }},
		{"leaves groups", "", 1, func(_ int, c *engine.Config) { c.LeaveMulticast, c.KeepRoutes, c.LMC = true, true, ib.LMC(1) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			walk.Run(t, "settings/"+x.name+".txt", walk.Config{
				Seed: uint64(800 + seed), Topology: "fattree,radix=4,levels=2", Policy: x.policy, Steps: 70, Most: 8 * time.Second / time.Duration(x.managers*x.managers), Managers: x.managers, Engine: recorded(x.engine),
			})
		})
	}
}
