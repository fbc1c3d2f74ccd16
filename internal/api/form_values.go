// form*.go: has the values of requests to the API and of its answers: partition numbers,
// GUIDs, memberships, and partitions, members and tenants as callers see them.

package api

import (
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// PKey is the number of a partition in a request, 15 bits.
type PKey string

// Schema describes a PKey.
func (PKey) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{
		Type: "string", Pattern: `^0[xX][0-9a-fA-F]{1,4}$`, Examples: []any{"0x0012"},
		Description: "number of a partition, without the bit of full membership: 0x0001 to 0x7ffe",
	}
	s.PrecomputeMessages()
	return s
}

// Base is the number.
func (k PKey) Base() (ib.PKeyBase, error) {
	b, err := ib.ParsePKeyBase(string(k))
	if err != nil {
		return 0, listen.FieldProblem(422, "invalid", "pkey", err.Error())
	}
	return b, nil
}

// GUID is the GUID of a port in a request.
type GUID string

// Schema describes a GUID.
func (GUID) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{
		Type: "string", Pattern: `^(0[xX])?[0-9a-fA-F]{16}$`, Examples: []any{"0x0002c90300000001"},
		Description: "GUID of a port: 16 hexadecimal digits, with or without 0x",
	}
	s.PrecomputeMessages()
	return s
}

// Port is the GUID.
func (g GUID) Port() (ib.PortGUID, error) {
	text := string(g)
	if len(text) == 16 {
		text = "0x" + text
	}
	p, err := ib.ParsePortGUID(text)
	if err != nil {
		return 0, listen.FieldProblem(422, "invalid", "port", err.Error())
	}
	return p, nil
}

// Ports reads a list of GUIDs.
func Ports(list []GUID) ([]ib.PortGUID, error) {
	out := make([]ib.PortGUID, 0, len(list))
	for _, g := range list {
		p, err := g.Port()
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Membership is limited, full or both.
type Membership string

// Schema describes a Membership.
func (Membership) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{
		Type: "string", Enum: []any{"limited", "full", "both"},
		Description: "full members reach every member, limited ones full members alone; both is both keys, where the policy file allows it",
	}
	s.PrecomputeMessages()
	return s
}

// Value is the membership.
func (m Membership) Value() (v policy.Membership) {
	// The schema has the words; another leaves 0, which is refused.
	_ = v.UnmarshalText([]byte(m))
	return v
}

// MTU reads the MTU that a partition may have; 0 is the default.
func MTU(bytes int) (ib.MTU, error) {
	if bytes == 0 {
		return 0, nil
	}
	m, err := ib.MTUFromBytes(bytes)
	if err != nil {
		return 0, listen.FieldProblem(422, "invalid", "mtu", err.Error())
	}
	return m, nil
}

// Rate reads the rate that a partition may have; 0 is the default.
func Rate(gbps float64) (ib.Rate, error) {
	if gbps == 0 {
		return 0, nil
	}
	tenths := int(gbps*10 + 0.5)
	r, err := ib.RateFromGbps(tenths)
	if err != nil || float64(tenths)/10 != gbps {
		return 0, listen.FieldProblem(422, "invalid", "rate", strconv.FormatFloat(gbps, 'g', -1, 64)+" Gb/s: no such InfiniBand rate")
	}
	return r, nil
}

// Labels reads the labels of a body; keep says that it says nothing of them.
func Labels(of map[string]string) (set resource.LabelSet, keep bool, err error) {
	if set, err = resource.MakeLabels(of); err != nil {
		return "", false, listen.FieldProblem(422, "invalid", "body.labels", err.Error())
	}
	return set, of == nil, nil
}

// Selector reads the selector of a list.
func Selector(text string) (resource.LabelSelector, error) {
	s, err := resource.ParseSelector(text)
	if err != nil {
		return nil, listen.FieldProblem(422, "invalid", "query.selector", err.Error())
	}
	return s, nil
}

// AllLabels are labels that say that there are no others: not nil.
func AllLabels(of map[string]string) map[string]string {
	if of == nil {
		return map[string]string{}
	}
	return of
}
