package engine_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/lab/walk"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// TestStories compares what managers do, by what they are told once, with what they did when
// the files below testdata were written: their events, packets and writes, and what they say of
// themselves and of the subnet, step by step.
func TestStories(t *testing.T) {
	const tree = "fattree,radix=4,levels=2"
	for seed, x := range []struct {
		name     string
		managers int
		engine   func(i int, c *engine.Config)
	}{
		{"alone", 1, nil},
		{"tenant", 1, func(_ int, c *engine.Config) { c.Profile, c.LMC, c.LearnCables = protect.Tenant, 1, true }},
		{"strict", 1, func(_ int, c *engine.Config) { c.Profile = protect.Strict; walk.Keyed(c) }},
		{"pair", 2, func(_ int, c *engine.Config) { c.Profile, c.Reregister = protect.Strict, true; walk.Keyed(c) }},
		{"leased", 2, func(_ int, c *engine.Config) { c.Profile, c.Election.Lease = protect.Tenant, true; walk.Keyed(c) }},
		{"believed", 2, func(_ int, c *engine.Config) { c.Pause, c.ReadAliases = time.Second, true }},
		{"takeovers", 2, func(_ int, c *engine.Config) {
			c.Profile, c.Periods.Sweep, c.Periods.Drift, c.Election.AcceptPolicy = protect.Tenant, 3*time.Second, 9*time.Second, true
			walk.Keyed(c)
		}},
		{"three", 3, func(_ int, c *engine.Config) { c.Profile = protect.Tenant; walk.Keyed(c) }},
		{"held", 1, func(_ int, c *engine.Config) { c.Hold, c.ReadLanes = true, true }},
		{"newcomer", 2, func(i int, c *engine.Config) {
			if c.Profile, c.Election.Newcomer = protect.Tenant, i > 0; i == 0 {
				walk.Keyed(c)
			}
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			walk.Run(t, "story/"+x.name+".txt", walk.Config{Seed: uint64(seed), Topology: tree, Steps: 70, Most: 14 * time.Second / time.Duration(x.managers*x.managers), Managers: x.managers, Engine: recorded(x.engine)})
		})
	}
}

// recorded has a configuration record the steps of the engine.
func recorded(change func(i int, c *engine.Config)) func(i int, c *engine.Config) {
	return func(i int, c *engine.Config) {
		c.OnStep = engine.Record
		if change != nil {
			change(i, c)
		}
	}
}
