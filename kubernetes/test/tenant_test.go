package kubetest

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/form"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// Ports of the demonstration fabric.
const (
	port1 v1alpha1.GUID = "0x000000000010001d"
	port2 v1alpha1.GUID = "0x000000000010001f"
)

// An IBTenant becomes a tenant of the service, with its keys and ports.
func TestTenant(t *testing.T) {
	s := newStand(t)
	red := tenant("red", s.namespace("red"), "0x0100", "0x01ff", port1, port2)
	s.create(red)
	s.ready(red)
	got, _, err := client.Get[form.Tenant](t.Context(), s.provider, "/tenants/red", nil)
	if err != nil || got.Keys == nil || got.Keys.First != "0x0100" || got.Keys.Last != "0x01ff" || got.Ports != 2 {
		t.Errorf("the service has %+v, %v", got, err)
	}
}
