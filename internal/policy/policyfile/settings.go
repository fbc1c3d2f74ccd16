package policyfile

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// The words for the directions in which switch ports check keys, as OpenSM's
// part_enforce has them.
const enforceIn, enforceOut, enforceBoth = "in", "out", "both"

// The words for whose flows routes are balanced.
const balanceAll, balanceTenants = "all", "tenants"

// uintOf is a setting that is a number.
type uintOf interface{ ~uint8 | ~uint16 | ~uint64 }

// field reads a number into a setting.
func field[T uintOf](r *yamlReader, name string, to *T, low, high uint64) func(ast.Node) {
	return func(v ast.Node) { *to = T(r.Numeral(v, name, low, high)) }
}

// settings reads what is asked of links and devices. Whatever is not named is as
// policy.DefaultSettings has it.
func (r *yamlReader) settings(node ast.Node) {
	s := policy.DefaultSettings()
	faults := len(r.Faults)
	r.Fields(node, "settings", map[string]func(ast.Node){
		"packet_life_time":            field(r, "packet_life_time", &s.LifeTimeValue, 0, 31),
		"head_of_queue_lifetime":      field(r, "head_of_queue_lifetime", &s.HOQLife, 0, 31),
		"leaf_head_of_queue_lifetime": field(r, "leaf_head_of_queue_lifetime", &s.LeafHOQLife, 0, 31),
		"vl_stall_count":              field(r, "vl_stall_count", &s.VLStallCount, 0, 7),
		"leaf_vl_stall_count":         field(r, "leaf_vl_stall_count", &s.LeafVLStallCount, 0, 7),
		"max_op_vls":                  field(r, "max_op_vls", &s.MaxOperationalVLs, 1, 5),
		"overrun_errors_threshold":    field(r, "overrun_errors_threshold", &s.OverrunErrors, 0, 15),
		"local_phy_errors_threshold":  field(r, "local_phy_errors_threshold", &s.LocalPhyErrors, 0, 15),
		"qos":                         func(v ast.Node) { s.Lanes = r.Truth(v, "qos") },
		"qos_sl2vl":                   func(v ast.Node) { s.SLToVL = parsed(r, v, "qos_sl2vl", policy.ParseMapping) },
		"qos_high_limit":              field(r, "qos_high_limit", &s.VLHighLimit, 0, math.MaxUint8),
		"qos_vlarb_high":              func(v ast.Node) { s.VLArbHigh = parsed(r, v, "qos_vlarb_high", policy.ParseArbitration) },
		"qos_vlarb_low":               func(v ast.Node) { s.VLArbLow = parsed(r, v, "qos_vlarb_low", policy.ParseArbitration) },
		"qos_levels":                  func(v ast.Node) { s.Levels = r.qosLevels(v) },
		"qos_enforce":                 func(v ast.Node) { s.EnforceLevels = r.Truth(v, "qos_enforce") },
		"part_enforce": func(v ast.Node) {
			if word, ok := r.Choice(v, "part_enforce", []string{enforceIn, enforceOut, enforceBoth}); ok {
				s.EnforceInbound, s.EnforceOutbound = word != enforceOut, word != enforceIn
			}
		},
		"part_enforce_switches":  func(v ast.Node) { s.EnforceBetweenSwitches = r.Truth(v, "part_enforce_switches") },
		"subnet_timeout":         field(r, "subnet_timeout", &s.SubnetTimeOut, 0, 31),
		"subnet_prefix":          field(r, "subnet_prefix", &s.GIDPrefix, 1, math.MaxUint64),
		"sm_sl":                  field(r, "sm_sl", &s.MasterSMSL, 0, policy.SLs-1),
		"master_sm_lid":          field(r, "master_sm_lid", &s.MasterSMLID, uint64(ib.LIDUnicastMin), uint64(ib.LIDUnicastMax)),
		"m_key_protection_level": field(r, "m_key_protection_level", &s.MKeyProtectBits, 1, 3),
		"m_key_lease_period":     field(r, "m_key_lease_period", &s.MKeyLeasePeriod, 0, math.MaxUint16),
		"link_width":             func(v ast.Node) { s.LinkWidth = r.width(v) },
		"link_speed":             func(v ast.Node) { s.LinkSpeed = r.speed(v) },
		"balance": func(v ast.Node) {
			word, _ := r.Choice(v, "balance", []string{balanceAll, balanceTenants})
			s.BalanceTenants = word == balanceTenants
		},
		"links": r.linkLimits,
		"drain": r.drained,
	})
	if err := s.Check(); err != nil && len(r.Faults) == faults {
		r.Fault(YAMLPos(node), "settings that a fabric can carry traffic with", "%v", err)
	}
	r.policy.Settings = &s
}

// parsed reads a setting that is a text of its own form.
func parsed[T any](r *yamlReader, node ast.Node, name string, parse func(string) (T, error)) (value T) {
	t, ok := r.Scalar(node, name, "text in quotes")
	if !ok {
		return value
	}
	value, err := parse(t.S)
	if err != nil {
		r.Fault(t.Pos, "a text as OpenSM has it", "%s: %v", name, err)
	}
	return value
}

func (r *yamlReader) width(node ast.Node) policy.Width {
	word, _ := r.Choice(node, "a width", policy.WidthNames())
	w, _ := policy.ParseWidth(word)
	return w
}

func (r *yamlReader) speed(node ast.Node) policy.Speed {
	word, _ := r.Choice(node, "a speed", policy.SpeedNames())
	s, _ := policy.ParseSpeed(word)
	return s
}

// linkLimits reads the limits of single links.
func (r *yamlReader) linkLimits(node ast.Node) {
	seen := map[policy.Place]policy.Pos{}
	for _, entry := range r.List(node, "links") {
		if r.Full() {
			return
		}
		l := policy.LinkLimit{Pos: YAMLPos(entry)}
		faults := len(r.Faults)
		r.Fields(entry, "an entry of links", map[string]func(ast.Node){
			"at": func(v ast.Node) {
				if s, ok := r.portAt(nil, v); ok {
					l.At, l.Pos = s.At, YAMLPos(v)
				}
			},
			"width": func(v ast.Node) { l.Width = r.width(v) },
			"speed": func(v ast.Node) { l.Speed = r.speed(v) },
		})
		if len(r.Faults) == faults && (l.At.Port == 0 || l.Width == 0 && l.Speed == 0) {
			r.Fault(l.Pos, "at, and width or speed", "an incomplete entry of links")
		}
		if first, again := seen[l.At]; again {
			r.Fault(l.Pos, "each place once", "%s again, as at %v", l.At, first)
		}
		seen[l.At] = l.Pos
		if len(r.policy.Links) == policy.LinksMax {
			r.Fault(l.Pos, "fewer", "more than %d links", policy.LinksMax)
			return
		}
		r.policy.Links = append(r.policy.Links, l)
	}
}

// drained reads the switches to be drained.
func (r *yamlReader) drained(node ast.Node) {
	const want = "the name or node GUID of a switch"
	seen := map[policy.Place]policy.Pos{}
	for _, entry := range r.List(node, "drain") {
		if r.Full() {
			return
		}
		t, ok := r.Scalar(entry, "drain", want)
		if !ok {
			continue
		}
		d := policy.Drained{At: policy.Place{Name: t.S}, Pos: t.Pos}
		if strings.HasPrefix(t.S, "0x") {
			guid, err := strconv.ParseUint(t.S[2:], 16, 64)
			if err != nil || guid == 0 {
				r.Fault(t.Pos, want, "%q for drain", t.S)
				continue
			}
			d.At = policy.Place{Switch: ib.NodeGUID(guid)}
		}
		if first, again := seen[d.At]; again || t.S == "" {
			r.Fault(t.Pos, "each switch once", "%q, as at %v", t.S, first)
			continue
		}
		seen[d.At] = t.Pos
		r.policy.Drained = append(r.policy.Drained, d)
	}
}

// writeSettings writes what differs from policy.DefaultSettings.
func writeSettings(w *bytes.Buffer, p *policy.Policy) {
	s, usual := p.Asked(), policy.DefaultSettings()
	var lines []string
	line := func(name string, differs bool, value any) {
		if differs {
			lines = append(lines, fmt.Sprintf("  %s: %v\n", name, value))
		}
	}
	line("packet_life_time", s.LifeTimeValue != usual.LifeTimeValue, uint8(s.LifeTimeValue))
	line("head_of_queue_lifetime", s.HOQLife != usual.HOQLife, uint8(s.HOQLife))
	line("leaf_head_of_queue_lifetime", s.LeafHOQLife != usual.LeafHOQLife, uint8(s.LeafHOQLife))
	line("vl_stall_count", s.VLStallCount != usual.VLStallCount, s.VLStallCount)
	line("leaf_vl_stall_count", s.LeafVLStallCount != usual.LeafVLStallCount, s.LeafVLStallCount)
	line("max_op_vls", s.MaxOperationalVLs != usual.MaxOperationalVLs, s.MaxOperationalVLs)
	line("overrun_errors_threshold", s.OverrunErrors != usual.OverrunErrors, s.OverrunErrors)
	line("local_phy_errors_threshold", s.LocalPhyErrors != usual.LocalPhyErrors, s.LocalPhyErrors)
	line("qos", s.Lanes != usual.Lanes, s.Lanes)
	line("qos_sl2vl", s.SLToVL != nil, strconv.Quote(policy.MappingText(s.SLToVL)))
	line("qos_high_limit", s.VLHighLimit != usual.VLHighLimit, s.VLHighLimit)
	for _, t := range []struct{ name, has, usual string }{
		{"qos_vlarb_high", policy.ArbitrationText(s.VLArbHigh), policy.ArbitrationText(usual.VLArbHigh)},
		{"qos_vlarb_low", policy.ArbitrationText(s.VLArbLow), policy.ArbitrationText(usual.VLArbLow)},
	} {
		line(t.name, t.has != t.usual, strconv.Quote(t.has))
	}
	if s.Levels != nil {
		lines = append(lines, levelsText(s.Levels))
	}
	line("qos_enforce", s.EnforceLevels, true)
	line("part_enforce", !s.EnforceInbound || !s.EnforceOutbound, direction(&s))
	line("part_enforce_switches", s.EnforceBetweenSwitches, true)
	line("subnet_timeout", s.SubnetTimeOut != usual.SubnetTimeOut, uint8(s.SubnetTimeOut))
	line("subnet_prefix", s.GIDPrefix != 0, fmt.Sprintf("%#016x", s.GIDPrefix))
	line("sm_sl", s.MasterSMSL != ib.SL(0), uint8(s.MasterSMSL))
	line("master_sm_lid", s.MasterSMLID != 0, uint16(s.MasterSMLID))
	line("m_key_protection_level", s.MKeyProtectBits != 0, s.MKeyProtectBits)
	line("m_key_lease_period", s.MKeyLeasePeriod != 0, s.MKeyLeasePeriod)
	line("link_width", s.LinkWidth != 0, s.LinkWidth)
	line("link_speed", s.LinkSpeed != 0, s.LinkSpeed)
	line("balance", s.BalanceTenants, balanceTenants)
	if len(p.Links) > 0 {
		lines = append(lines, "  links:\n")
	}
	for _, l := range p.Links {
		rate := ""
		if l.Width != 0 {
			rate += fmt.Sprintf(", width: %s", l.Width)
		}
		if l.Speed != 0 {
			rate += fmt.Sprintf(", speed: %s", l.Speed)
		}
		lines = append(lines, fmt.Sprintf("    - {at: %s%s}\n", strconv.Quote(l.At.String()), rate))
	}
	if len(p.Drained) > 0 {
		lines = append(lines, "  drain:\n")
	}
	for _, d := range p.Drained {
		lines = append(lines, fmt.Sprintf("    - %s\n", strconv.Quote(d.At.SwitchName())))
	}
	if len(lines) > 0 {
		w.WriteString("settings:\n")
	}
	for _, l := range lines {
		w.WriteString(l)
	}
}

func direction(s *policy.Settings) string {
	if s.EnforceInbound {
		return enforceIn
	}
	return enforceOut
}
