package opensm

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/policy"
)

const whyNoQoS = "qos is FALSE, so that OpenSM does nothing with it"

func (m *migration) quality(*option) answer {
	m.settings.Lanes = true
	return setting("qos", true)
}

// laneOptions are the options for all ports that have a setting of the same name.
var laneOptions = []string{"qos_high_limit", "qos_vlarb_high", "qos_vlarb_low", "qos_sl2vl"}

// lanes decides on an option of virtual lanes: of all ports, or of one kind of ports.
func (m *migration) lanes(o *option) answer {
	_, field, _ := strings.Cut(o.name, "_")
	class := ""
	for _, c := range []string{"ca_", "sw0_", "swe_", "rtr_"} {
		if rest, ok := strings.CutPrefix(field, c); ok {
			class, field = c, rest
		}
	}
	all := "qos_" + field
	switch {
	case !m.conf.truth("qos"):
		return without(whyNoQoS)
	case field == "max_vls":
		return no("max_op_vls limits the virtual lanes of all ports here (settings: {max_op_vls: ...})")
	case class != "" && m.conf.isSet(all) && m.conf.value(all) == o.value:
		return without("the same as " + all)
	case class != "":
		return no("all ports get the same tables here, those of " + all)
	}
	m.tables()
	if why := m.laneFaults[o.name]; why != "" {
		return no(why)
	}
	return setting(o.name, fmt.Sprintf("%q", o.value))
}

// tables takes over the tables for all ports, once: together, since they have to fit together.
func (m *migration) tables() {
	if m.laneFaults != nil {
		return
	}
	m.laneFaults = map[string]string{}
	s := m.settings
	for _, name := range laneOptions {
		if !m.conf.isSet(name) {
			continue
		}
		if err := setTable(&s, name, m.conf); err != nil {
			m.laneFaults[name] = err.Error() + "; ibwarden's default stays"
		}
	}
	if n := m.conf.number("max_op_vls"); n >= numbers["max_op_vls"].low && n <= numbers["max_op_vls"].high {
		s.MaxOperationalVLs = uint8(n) // whichever line comes first: the tables have to fit it
	}
	if err := s.Check(); err != nil {
		for _, name := range laneOptions {
			m.laneFaults[name] = "ibwarden's defaults stay: " + err.Error()
		}
		return
	}
	m.settings.VLHighLimit, m.settings.VLArbHigh, m.settings.VLArbLow, m.settings.SLToVL = s.VLHighLimit, s.VLArbHigh, s.VLArbLow, s.SLToVL
}

func setTable(s *policy.Settings, name string, c *Conf) error {
	switch name {
	case "qos_high_limit":
		s.VLHighLimit = uint8(c.number(name)) // at most 255, else OpenSM has its default
		return nil
	case "qos_sl2vl":
		m, err := policy.ParseMapping(c.value(name))
		if err == nil {
			s.SLToVL = m
		}
		return err
	}
	table, err := policy.ParseArbitration(c.value(name))
	switch {
	case err != nil:
		return err
	case name == "qos_vlarb_high":
		s.VLArbHigh = table
	default:
		s.VLArbLow = table
	}
	return nil
}
