package views

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// A tenant's matrix has its own ports against ports of others that are in its partitions, and against
// all others: not how two others stand to each other, nor a key of a partition that it does not know
// over which the policy lets two ports talk.
func TestATenantsCellsAreItsOwn(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(6, "leaf")
	red, blue, zinc := b.Host(leaf, "red"), b.Host(leaf, "blue"), b.Host(leaf, "zinc")
	for _, p := range []*observed.Port{red, blue, zinc} {
		keys := []ib.PKey{0x8100, 0x8500}
		if p == zinc {
			keys = []ib.PKey{0x8300}
		}
		subnettest.SetPKeysThrough(p, keys...)
	}
	b.Route()
	b.ManagedFrom(zinc)
	s := storetest.NewState(t, red.GUID, blue.GUID, zinc.GUID)
	s.Ask("red", 0x100, blue.GUID)
	both := []ib.PortGUID{red.GUID, blue.GUID}
	allowed := []observed.Partition{{Base: 0x100, Name: "red/red-net", Full: both}, {Base: 0x300, Name: "zinc/zinc-net", Full: []ib.PortGUID{zinc.GUID}}, {Base: 0x500, Name: "hidden", Full: both}}
	facts := &MatrixFacts{Snapshot: &snapshot.Snapshot{Fabric: b.Fabric}, Allowed: allowed, Proof: isolation.Prove(b.Fabric, allowed)}
	matrix := func(tenant string) (m Matrix, text string) {
		m = new(MatrixCache).Matrix(SeeMatrix(s.State, storetest.By(tenant), facts))
		data, _ := json.Marshal(m)
		return m, string(data)
	}
	for _, agreed := range []bool{false, true} {
		if agreed {
			s.Ask("blue", 0x100, blue.GUID)
		}
		for _, tenant := range []string{"red", "blue", "zinc"} {
			m, text := matrix(tenant)
			for _, c := range m.Cells {
				if c.A != 0 {
					t.Errorf("%s is told how %s and %s stand to each other", tenant, m.Parties[c.A].Name, m.Parties[c.B].Name)
				}
			}
			for _, p := range []*observed.Port{red, blue, zinc} {
				want := s.Owner(p.GUID) == tenant || agreed && tenant == "red" && p == blue
				if got := strings.Contains(text, p.GUID.String()); got && !want {
					t.Errorf("agreed %v: %s is told of %v: %s", agreed, tenant, p, text)
				}
			}
			if strings.Contains(text, "8500") || strings.Contains(text, "0500") || strings.Contains(text, "hidden") {
				t.Errorf("agreed %v: %s is told of a partition that it does not know: %s", agreed, tenant, text)
			}
		}
		if m, text := matrix("red"); (len(m.Parties) == 4) != agreed {
			t.Errorf("agreed %v: red has the parties of %s", agreed, text)
		}
	}
	v := SeeMatrix(s.State, storetest.By("red"), facts).view
	for _, x := range []struct {
		key      ib.PKey
		violated bool
		want     string
	}{{0x8100, false, "0x8100"}, {0x8500, false, ""}, {0x8500, true, "0x8500"}} {
		if got := v.key(x.key, x.violated); got != x.want {
			t.Errorf("the key %v of red's witness, violated %v: %q, want %q", x.key, x.violated, got, x.want)
		}
	}
	whole := SeeMatrix(s.State, storetest.By(resource.Provider), facts).view
	if got := whole.key(0x8500, false); got != "0x8500" {
		t.Errorf("the provider is told the key %q", got)
	}
	x := isolation.Between{Verdict: isolation.ByEndPorts, Cause: "leaf:3: does not check P_Keys", At: zinc}
	if got := v.kindOfCause(&x); strings.Contains(got, "leaf") || whole.kindOfCause(&x) != x.Cause {
		t.Errorf("of a verdict that rests on a place of others red is told %q, the provider %q", got, whole.kindOfCause(&x))
	}
	if v.port(zinc) == zinc.String() || v.port(red) != red.String() || v.port(blue) != blue.String() {
		t.Errorf("red is told the names %q, %q, %q", v.port(zinc), v.port(red), v.port(blue))
	}
}
