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

// MoveBody moves ports to a tenant, out of all partitions but those that it names.
type MoveBody struct {
	Tenant string     `json:"tenant" minLength:"1" maxLength:"40"`
	Ports  []GUID     `json:"ports" minItems:"1" maxItems:"10000"`
	Into   []MoveInto `json:"into,omitempty" maxItems:"64" doc:"partitions of the tenant"`
}

// MoveInto is a partition that ports are moved into, and as what.
type MoveInto struct {
	PKey PKey `json:"pkey"`
	MembershipBody
}

// Change is the change that the body asks for.
func (b *MoveBody) Change() (resource.MovePorts, error) {
	c := resource.MovePorts{Tenant: b.Tenant}
	list, err := Ports(b.Ports)
	if err != nil {
		return c, err
	}
	c.Ports = list
	c.Into, err = intoOf(b.Into)
	return c, err
}

func intoOf(list []MoveInto) (into []resource.Joined, err error) {
	for _, j := range list {
		k, err := j.PKey.Base()
		if err != nil {
			return nil, err
		}
		into = append(into, resource.Joined{PKey: k, Membership: j.Membership.Value(), Index0: j.Index0})
	}
	return into, nil
}

// OfferBody offers ports to a tenant.
type OfferBody struct {
	Tenant string `json:"tenant" minLength:"1" maxLength:"40"`
	Ports  []GUID `json:"ports" minItems:"1" maxItems:"10000"`
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
