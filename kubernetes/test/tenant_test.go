package kubetest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/form"
	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// Ports of the demonstration fabric.
const (
	port1 v1alpha1.GUID = "0x000000000010001d"
	port2 v1alpha1.GUID = "0x000000000010001f"
)

// tenant is an IBTenant for a namespace.
func tenant(name, namespace string, first, last v1alpha1.PKey, ports ...v1alpha1.GUID) *v1alpha1.IBTenant {
	t := &v1alpha1.IBTenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Spec = v1alpha1.IBTenantSpec{Namespace: namespace, PKeys: v1alpha1.PKeyRange{First: first, Last: last}}
	for _, g := range ports {
		t.Spec.Ports = append(t.Spec.Ports, v1alpha1.TenantPort{GUID: g})
	}
	return t
}

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
