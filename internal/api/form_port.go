package api

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// AssignBody gives ports to a tenant.
type AssignBody struct {
	Tenant string       `json:"tenant" minLength:"1" maxLength:"40"`
	Ports  []AssignPort `json:"ports" minItems:"1" maxItems:"10000"`
}

// AssignPort is one port that is given, and the place that it is bound to.
type AssignPort struct {
	GUID  GUID         `json:"guid"`
	Bound *views.Place `json:"bound,omitempty" doc:"the only place where it gets its keys"`
}

// ReleaseBody takes ports from their tenants.
type ReleaseBody struct {
	Ports []GUID `json:"ports" minItems:"1" maxItems:"10000"`
}

// Change is the change that the body asks for.
func (b *AssignBody) Change() (resource.AssignPorts, error) {
	c := resource.AssignPorts{Tenant: b.Tenant}
	for _, p := range b.Ports {
		g, err := p.GUID.Port()
		if err != nil {
			return c, err
		}
		port := resource.Port{GUID: g}
		if p.Bound != nil {
			at, err := GUID(p.Bound.Switch).Port()
			if err != nil {
				return c, err
			}
			port.Switch, port.SwitchPort = ib.NodeGUID(at), ib.PortNum(p.Bound.Port)
		}
		c.Ports = append(c.Ports, port)
	}
	slices.SortStableFunc(c.Ports, func(a, b resource.Port) int { return cmp.Compare(a.GUID, b.GUID) })
	return c, nil
}
