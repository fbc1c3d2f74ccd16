package policy

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Settings are what is asked of every device that can have it.
type Settings struct {
	// LifeTimeValue is how long a packet may be in a switch before that drops it
	// (SwitchInfo). Values above smp.TimeValueFiniteMax are "for ever".
	LifeTimeValue ib.TimeValue
	// HOQLife is how long a packet may stand at the head of a virtual lane's queue
	// before a switch drops it, on ports to switches, and LeafHOQLife on those
	// to CAs and routers. Values above smp.TimeValueFiniteMax are "for ever".
	HOQLife, LeafHOQLife ib.TimeValue
	// VLStallCount is how many such drops in a row stall a virtual lane, 0 (never) to 7,
	// on ports to switches, and LeafVLStallCount on those to CAs and routers.
	VLStallCount, LeafVLStallCount uint8
	// MaxOperationalVLs is the most virtual lanes that a link uses, a code of
	// smp.DataVLs: 1 to 5 for 1, 2, 4, 8 and 15.
	MaxOperationalVLs uint8
	// OverrunErrors and LocalPhyErrors are how many errors of their kind a port
	// takes before it raises its trap 130 or 129, 0 to 15.
	OverrunErrors, LocalPhyErrors uint8

	// Lanes has the tables of virtual lanes written even where all traffic is on service
	// level 0.
	Lanes bool
	// SLToVL is the virtual lane of each service level, 0 to 14, or 15 for none; a virtual lane
	// that a link does not have is taken modulo the virtual lanes that it has. nil stands
	// for the level itself, modulo the virtual lanes.
	SLToVL *[SLs]ib.VL
	// VLHighLimit is how much the high-priority table may send while the other
	// waits, in units of 4096 bytes; 255 for no limit, 0 for one packet.
	VLHighLimit uint8
	// VLArbHigh and VLArbLow are the arbitration tables, at most
	// smp.VLArbitrationMax entries each, weights in units of 64 bytes. A virtual lane that
	// carries something stands in one of them. They are not to be changed.
	VLArbHigh, VLArbLow []smp.VLArbitrationEntry
	// Levels are the service levels with a share of every link, in rising order; nil for
	// none. Every other level shares with level 0. They are not to be changed.
	Levels []Level
	// EnforceLevels has the switch drop what a CA or router sends on a service level that
	// none of its partitions has.
	EnforceLevels bool

	// EnforceInbound and EnforceOutbound choose the directions in which the
	// switch port before an end port checks P_Keys; at least one.
	// EnforceBetweenSwitches has the ports between switches check too, where the
	// partitions of everybody behind them fit.
	EnforceInbound, EnforceOutbound, EnforceBetweenSwitches bool

	// SubnetTimeOut is PortInfo.SubnetTimeOut of end ports, 4.096 us * 2^n for
	// any packet to cross the subnet, 0 to 31.
	SubnetTimeOut ib.TimeValue
	// GIDPrefix is PortInfo.GidPrefix of end ports, 0 for what the manager was
	// told, or ib.DefaultGIDPrefix.
	GIDPrefix uint64
	// MasterSMSL is the service level on which end ports ask the manager.
	MasterSMSL ib.SL
	// MasterSMLID is a LID that no port keeps: the port of the manager that is master
	// has it as its base LID, in place of its own. 0 for none.
	MasterSMLID ib.LID

	// MKeyProtectBits is PortInfo.M_KeyProtectBits of end ports, 1 to 3; 0 for what
	// the profile of the manager asks, and never less than that.
	MKeyProtectBits uint8
	// MKeyLeasePeriod is PortInfo.M_KeyLeasePeriod of end ports, in seconds; 0 for
	// no end.
	MKeyLeasePeriod uint16

	// BalanceTenants has routes loaded with the flows between members of partitions, in
	// place of those between all ports.
	BalanceTenants bool

	// LinkWidth and LinkSpeed are the most that any link may use; the zero values
	// leave what is enabled as it is.
	LinkWidth Width
	LinkSpeed Speed
}

// SLs is how many service levels there are.
const SLs = 16

// DefaultSettings are the settings of a policy that does not speak of them; the reasons
// are in docs/settings.md.
func DefaultSettings() Settings {
	s := Settings{
		LifeTimeValue: 18, HOQLife: 15, LeafHOQLife: 13, VLStallCount: 7, LeafVLStallCount: 7,
		MaxOperationalVLs: 5, OverrunErrors: 8, LocalPhyErrors: 8,
		EnforceInbound: true, EnforceOutbound: true, SubnetTimeOut: 18,
	}
	for vl := range smp.DataVLs(mostVLs) {
		s.VLArbLow = append(s.VLArbLow, smp.VLArbitrationEntry{VL: ib.VL(vl), Weight: defaultWeight})
	}
	return s
}

// defaultWeight is the share of each virtual lane in one turn, in units of 64 bytes: a
// packet of 4096 bytes.
const defaultWeight = 64

// mostVLs is the highest code of PortInfo.VLCap, for 15 virtual lanes.
const mostVLs = 5

// UsesLanes reports whether the tables of virtual lanes are to be written whatever service
// levels partitions have: because it is said so, or because one of the tables is
// another than usual, or because the manager is asked on another level than 0.
func (s *Settings) UsesLanes() bool {
	usual := DefaultSettings()
	return s.Lanes || s.Levels != nil || s.EnforceLevels || s.MasterSMSL != 0 || s.SLToVL != nil || s.VLHighLimit != usual.VLHighLimit ||
		!slices.Equal(s.VLArbHigh, usual.VLArbHigh) || !slices.Equal(s.VLArbLow, usual.VLArbLow)
}

// Equal reports whether two Settings ask for the same.
func (s *Settings) Equal(t *Settings) bool { return reflect.DeepEqual(s, t) }

// Check reports the first value that no device could hold, or that would have
// the fabric do nothing.
func (s *Settings) Check() error {
	for _, c := range []struct {
		name             string
		value, low, high uint8
	}{
		{"packet_life_time", uint8(s.LifeTimeValue), 0, 31},
		{"head_of_queue_lifetime", uint8(s.HOQLife), 0, 31},
		{"leaf_head_of_queue_lifetime", uint8(s.LeafHOQLife), 0, 31},
		{"vl_stall_count", s.VLStallCount, 0, 7},
		{"leaf_vl_stall_count", s.LeafVLStallCount, 0, 7},
		{"max_op_vls", s.MaxOperationalVLs, 1, mostVLs},
		{"overrun_errors_threshold", s.OverrunErrors, 0, 15},
		{"local_phy_errors_threshold", s.LocalPhyErrors, 0, 15},
		{"subnet_timeout", uint8(s.SubnetTimeOut), 0, 31},
		{"sm_sl", uint8(s.MasterSMSL), 0, SLs - 1},
		{"m_key_protection_level", s.MKeyProtectBits, 0, 3},
	} {
		if c.value < c.low || c.value > c.high {
			return fmt.Errorf("%s %d, want %d to %d", c.name, c.value, c.low, c.high)
		}
	}
	if s.MasterSMLID != 0 && !s.MasterSMLID.IsUnicast() {
		return fmt.Errorf("master_sm_lid %d, want %d to %d", s.MasterSMLID, ib.LIDUnicastMin, ib.LIDUnicastMax)
	}
	if !s.EnforceInbound && !s.EnforceOutbound {
		return errors.New("part_enforce in no direction, want in, out or both")
	}
	if err := checkTable("qos_vlarb_high", s.VLArbHigh); err != nil {
		return err
	}
	if err := checkTable("qos_vlarb_low", s.VLArbLow); err != nil {
		return err
	}
	if err := s.checkLevels(); err != nil {
		return err
	}
	return s.checkServed()
}

func checkTable(name string, table []smp.VLArbitrationEntry) error {
	if len(table) > smp.VLArbitrationMax {
		return fmt.Errorf("%s of %d entries, want at most %d", name, len(table), smp.VLArbitrationMax)
	}
	for _, e := range table {
		if e.VL >= ib.VLManagement {
			return fmt.Errorf("%s: VL %d, want 0 to 14", name, e.VL)
		}
	}
	return nil
}

// checkServed finds a virtual lane that something is sent on and that neither table gives
// a turn, on a link of any number of virtual lanes that is allowed.
func (s *Settings) checkServed() error {
	for code := uint8(2); code <= s.MaxOperationalVLs; code++ {
		lanes := smp.DataVLs(code)
		for sl, vl := range s.Mapping(lanes).VLs {
			if vl != ib.VLManagement && !turns(s.VLArbHigh, vl) && !turns(s.VLArbLow, vl) {
				return fmt.Errorf("VL %d, which service level %d takes on a link of %d VLs, has no weight in qos_vlarb_high or qos_vlarb_low: it would never be served (give it one, map the level elsewhere with qos_sl2vl, or lower max_op_vls)", vl, sl, lanes)
			}
		}
	}
	if s.SLToVL != nil && s.SLToVL[s.MasterSMSL] == ib.VLManagement {
		return fmt.Errorf("sm_sl %d, which qos_sl2vl drops: nobody could ask the manager", s.MasterSMSL)
	}
	return nil
}

func turns(table []smp.VLArbitrationEntry, vl ib.VL) bool {
	return slices.ContainsFunc(table, func(e smp.VLArbitrationEntry) bool { return e.VL == vl && e.Weight > 0 })
}

// Mapping is the mapping of service levels for a link of so many virtual lanes, 1 to 15.
func (s *Settings) Mapping(lanes int) *smp.SLToVLMappingTable {
	t := &smp.SLToVLMappingTable{}
	for sl := range t.VLs {
		switch {
		case s.SLToVL == nil:
			t.VLs[sl] = ib.VL(sl % lanes)
		case s.SLToVL[sl] == ib.VLManagement:
			t.VLs[sl] = ib.VLManagement
		default:
			t.VLs[sl] = s.SLToVL[sl] % ib.VL(lanes)
		}
	}
	return t
}

// Arbitration is the table for a port of so many virtual lanes, in parts of
// smp.VLArbitrationPerPart for a device that has that many entries. Entries of
// virtual lanes that the link does not have are left out; ok is false when not all of the
// others fit.
func Arbitration(table []smp.VLArbitrationEntry, lanes, entries int) (parts []smp.VLArbitrationTable, ok bool) {
	parts = make([]smp.VLArbitrationTable, (entries+smp.VLArbitrationPerPart-1)/smp.VLArbitrationPerPart)
	at := 0
	for _, e := range table {
		if int(e.VL) >= lanes || e.Weight == 0 {
			continue
		}
		if at == entries {
			return parts, false
		}
		parts[at/smp.VLArbitrationPerPart].Entries[at%smp.VLArbitrationPerPart] = e
		at++
	}
	return parts, true
}
