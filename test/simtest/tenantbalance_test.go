package simtest

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// With balance: tenants routes are others than without, and none moves because a host joins
// another tenant.
func TestBalanceForTenants(t *testing.T) {
	list := generate(t, "fattree,radix=8,levels=2,hosts=16")
	names := hostNames(list)
	parts := []sharer{{name: "red"}, {name: "blue"}, {name: "green"}}
	for i, h := range names[1:] {
		parts[i/2%3].hosts = append(parts[i/2%3].hosts, h)
	}
	for _, balanced := range []bool{false, true} {
		p := sharers(parts)
		p.Settings.BalanceTenants = balanced
		w := bringUp(t, setup{list: list, policy: p})
		w.forget()
		parts := append([]sharer{}, parts...)
		parts[0].hosts, parts[1].hosts = parts[0].hosts[1:], append(append([]string{}, parts[1].hosts...), parts[0].hosts[0])
		next := sharers(parts)
		next.Settings.BalanceTenants = balanced
		w.change(next)
		if moved := len(w.sets(smp.AttrLinearForwardingTable)); moved > 0 {
			t.Errorf("balanced %v: %d blocks of forwarding tables are written because a host joined another tenant", balanced, moved)
		}
		next = sharers(parts)
		next.Settings.BalanceTenants = !balanced
		w.change(next)
		if moved := len(w.sets(smp.AttrLinearForwardingTable)); moved == 0 {
			t.Errorf("balanced %v: no route is another one", !balanced)
		}
	}
}
