package terminal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Settings has what every port in use holds besides addresses and keys: how long
// packets wait, and how virtual lanes take turns.
func Settings(f *observed.Fabric) Table {
	t := NewTable("guid", "port", "life_time", "hoq_life", "vl_stall_count", "vls", "vl_high_limit", "vlarb_high", "vlarb_low",
		"subnet_timeout", "sm_sl", "width_enabled", "speed_enabled", "name")
	for _, n := range sorted(f) {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.InfoRead || !p.Reached || i > 0 && p.Peer == nil {
				continue
			}
			info := &p.Info
			life := "-"
			if n.Switch != nil && n.Switch.InfoRead {
				life = fmt.Sprint(uint8(n.Switch.Info.LifeTimeValue))
			}
			exit, end := n.Switch != nil && i > 0, p.IsEnd()
			t.Add(n.GUID(), p.Num, life, only(exit, info.HOQLife), only(exit, info.VLStallCount),
				smp.DataVLs(info.OperationalVLs), info.VLHighLimit,
				turns(p, smp.VLArbHighFirst, smp.VLArbHighSecond), turns(p, smp.VLArbLowFirst, smp.VLArbLowSecond),
				only(end, info.SubnetTimeOut), only(end, info.MasterSMSL), enabled(info.LinkWidthEnabled.String()),
				enabled(info.LinkSpeedEnabled.String(), info.LinkSpeedExtEnabled.String(), info.LinkSpeedExtEnabled2.String()), n.Name())
		}
	}
	return t
}

// only is a number where it means something.
func only[T ~uint8](means bool, n T) string {
	if !means {
		return "-"
	}
	return strconv.Itoa(int(n))
}

// enabled joins what sets of widths or speeds say of themselves, without their unit.
func enabled(sets ...string) string {
	var out []string
	for _, s := range sets {
		if s != "none" {
			out = append(out, strings.ReplaceAll(strings.ReplaceAll(s, " Gbps", ""), " or ", ","))
		}
	}
	if out == nil {
		return "-"
	}
	return strings.Join(out, ",")
}

// turns are the entries of an arbitration table that have a weight, LANE:WEIGHT; "-"
// for none.
func turns(p *observed.Port, parts ...smp.VLArbPart) string {
	var out []string
	for _, part := range parts {
		if int(part) > len(p.VLArbitration) {
			continue
		}
		for _, e := range p.VLArbitration[part-1].Entries {
			if e.Weight > 0 {
				out = append(out, fmt.Sprintf("%d:%d", e.VL, e.Weight))
			}
		}
	}
	if out == nil {
		return "-"
	}
	return strings.Join(out, ",")
}
