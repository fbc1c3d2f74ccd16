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

// TestMulticastStories compares the tables that a manager wants of fabrics which change under it with
// what it wanted when the files below testdata were written.
func TestMulticastStories(t *testing.T) {
	for seed, x := range []struct {
		name, topology string
		engine         func(_ int, c *engine.Config)
	}{
		{"tree", "fattree,radix=4,levels=3", func(_ int, c *engine.Config) { c.Routing, c.Profile = routing.Auto, protect.Tenant }},
		{"torus", "torus,x=3,y=3,hosts=1", func(_ int, c *engine.Config) { c.Routing, c.LMC, c.ReadAliases = routing.Auto, ib.LMC(1), true }},
		{"keeps", "torus,x=3,y=2,hosts=2", func(_ int, c *engine.Config) { c.KeepRoutes, c.ReadLanes = true, true }},
	} {
		t.Run(x.name, func(t *testing.T) {
			walk.Run(t, "multicast/"+x.name+".txt", walk.Config{Seed: uint64(720 + seed), Topology: x.topology, Steps: 40, Most: 4 * time.Second, Managers: 1, Engine: x.engine})
		})
	}
}
