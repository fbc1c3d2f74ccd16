package resource_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// TestLabelsAreTheOwners: the labels of a partition are for its owner and the provider, and nobody else
// chooses by them.
func TestLabelsAreTheOwners(t *testing.T) {
	p := &resource.Partition{Name: "net", Owner: "red", Labels: "team=a"}
	for tenant, want := range map[string]bool{"red": true, resource.Provider: true, "blue": false, "": false} {
		if got := p.LabelsFor(resource.Caller{Name: tenant, Tenant: tenant}); (got == p.Labels) != want || !want && got != "" {
			t.Errorf("%q sees the labels %q", tenant, got)
		}
	}
}
