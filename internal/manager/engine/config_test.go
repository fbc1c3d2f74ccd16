package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// TestSetDefaults fills in what is not given, and leaves what is.
func TestSetDefaults(t *testing.T) {
	usual := Election{MasterTimeout: mastership.DefaultMasterTimeout}
	all := Config{GIDPrefix: 1, Periods: Periods{Sweep: 2, Drift: 3, Guard: 4, GuardRate: 6}, Election: Election{MasterTimeout: 5}, Profile: protect.Strict}
	for _, x := range []struct{ given, want Config }{
		{Config{}, Config{GIDPrefix: ib.DefaultGIDPrefix, Periods: Periods{Sweep: 10 * time.Second, Drift: time.Minute, GuardRate: 4096}, Election: usual}},
		{Config{Profile: protect.Basic}, Config{
			Profile: protect.Basic, GIDPrefix: ib.DefaultGIDPrefix, Election: usual,
			Periods: Periods{Sweep: 10 * time.Second, Drift: time.Minute, Guard: time.Second, GuardRate: 4096},
		}},
		{all, all},
	} {
		got := x.given
		got.SetDefaults()
		if d := cmp.Diff(x.want, got, cmpopts.IgnoreUnexported(Config{}, desired.Assigned{})); d != "" {
			t.Errorf("%s", d)
		}
	}
}

// TestGuardsAndBits: who watches guards, and how far M_Keys are protected.
func TestGuardsAndBits(t *testing.T) {
	own := new(mkey.KeyingConfig)
	for _, x := range []struct {
		c     Config
		watch bool
		bits  uint8
	}{
		{Config{}, false, 1},
		{Config{Periods: Periods{Guard: 1}}, true, 1},
		{Config{Profile: protect.Tenant}, true, 1},
		{Config{Profile: protect.Tenant, Hold: true, Periods: Periods{Guard: 1}}, false, 1},
		{Config{Profile: protect.Tenant, Keys: own}, true, 2},
		{Config{Profile: protect.Basic, Keys: own}, true, 1},
		{Config{Profile: protect.Strict, Keys: own, Election: Election{Trusted: []ib.PortGUID{}}}, true, 2},
		{Config{Profile: protect.Strict, Keys: own, Election: Election{Trusted: []ib.PortGUID{7}}}, true, 1},
	} {
		if got := x.c.WatchesGuards(); got != x.watch {
			t.Errorf("%v, hold %v, every %v: watches %v", x.c.Profile, x.c.Hold, x.c.Periods.Guard, got)
		}
		if got := x.c.ProtectBits(); got != x.bits {
			t.Errorf("%v, own keys %v, trusts %v: %d bits, want %d", x.c.Profile, x.c.Keys != nil, x.c.Election.Trusted, got, x.bits)
		}
	}
}

// TestDesiredAndReading: what a configuration says of the tables that are wanted, and of what is read for that.
func TestDesiredAndReading(t *testing.T) {
	f := observed.NewFabric()
	c := Config{Profile: protect.Strict, GIDPrefix: 3, LMC: 2, Routing: routing.MinHop, MKey: 5, Reregister: true, Keys: new(mkey.KeyingConfig), Known: desired.Assigned{Managed: true}}
	in := c.Desired(f)
	if in.Fabric != f || in.Profile != c.Profile || in.GIDPrefix != 3 || in.LMC != 2 || in.Routing != routing.MinHop || in.MKey != 5 || !in.OwnKeys || in.ProtectBits != 2 || !in.Reregister || in.Newcomer || !in.Known.Managed {
		t.Errorf("%+v", in)
	}
	c.Keys, c.Known.Managed = nil, false
	if in = c.Desired(f); in.OwnKeys || in.ProtectBits != 1 || !in.Newcomer {
		t.Errorf("without keys of its own, for the first time: %+v", in)
	}
	s := policy.DefaultSettings()
	s.Lanes = true
	for _, x := range []struct {
		name         string
		c            Config
		p            *policy.Policy
		qos, aliases bool
	}{
		{"nothing", Config{Routing: routing.MinHop}, &policy.Policy{}, false, false},
		{"lanes of the policy", Config{Routing: routing.MinHop}, &policy.Policy{Settings: &s}, true, false},
		{"lanes of the routes", Config{Routing: routing.DFSSSP}, &policy.Policy{}, true, false},
	} {
		got := x.c.Reading(x.p)
		if !got.Forwarding || got.QoS != x.qos || got.Aliases != x.aliases || got.MKey != x.c.MKey {
			t.Errorf("%s: %+v", x.name, got)
		}
	}
}
