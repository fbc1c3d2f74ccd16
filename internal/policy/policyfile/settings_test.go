package policyfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/policy"
)

const everySetting = `version: 1
default: limited
settings:
  packet_life_time: 17
  head_of_queue_lifetime: 14
  leaf_head_of_queue_lifetime: 12
  vl_stall_count: 6
  leaf_vl_stall_count: 5
  max_op_vls: 2
  overrun_errors_threshold: 3
  local_phy_errors_threshold: 4
  qos: true
  qos_sl2vl: "0,1,0,1,0,1,0,1,0,1,0,1,0,1,0,15"
  qos_high_limit: 7
  qos_vlarb_high: "1:9"
  qos_vlarb_low: "0:3,1:1"
  part_enforce: out
  part_enforce_switches: true
  subnet_timeout: 16
  subnet_prefix: 0xfe80000000000077
  sm_sl: 1
  master_sm_lid: 77
  m_key_protection_level: 3
  m_key_lease_period: 15
  link_width: 4x
  link_speed: hdr
  balance: tenants
  links:
    - {at: "leaf 1:5", width: 1x}
    - {at: "0x0000000000200001:36", width: 2x, speed: qdr}
  drain:
    - "spine 1"
    - "0x0000000000200002"
`

func everySettingWants() policy.Settings {
	return policy.Settings{
		LifeTimeValue: 17, HOQLife: 14, LeafHOQLife: 12, VLStallCount: 6, LeafVLStallCount: 5, MaxOperationalVLs: 2,
		OverrunErrors: 3, LocalPhyErrors: 4, Lanes: true, SLToVL: &[policy.SLs]ib.VL{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 15},
		VLHighLimit: 7, VLArbHigh: []smp.VLArbitrationEntry{{VL: 1, Weight: 9}}, VLArbLow: []smp.VLArbitrationEntry{{VL: 0, Weight: 3}, {VL: 1, Weight: 1}},
		EnforceOutbound: true, EnforceBetweenSwitches: true, SubnetTimeOut: 16, GIDPrefix: 0xfe80000000000077, MasterSMSL: 1, MasterSMLID: 77,
		MKeyProtectBits: 3, MKeyLeasePeriod: 15, LinkWidth: 4, LinkSpeed: policy.HDR, BalanceTenants: true,
	}
}

// Every setting is read, and what is written reads the same; one that is as usual is
// not written.
func TestSettings(t *testing.T) {
	p := mustRead(t, everySetting)
	if d := cmp.Diff(everySettingWants(), p.Asked()); d != "" {
		t.Errorf("settings (-want +got)\n%s", d)
	}
	if len(p.Links) != 2 || p.Links[0].At != (policy.Place{Name: "leaf 1", Port: 5}) || p.Links[1].At != (policy.Place{Switch: 0x200001, Port: 36}) ||
		p.Links[0].Width != 1 || p.Links[0].Speed != 0 || p.Links[1].Width != 2 || p.Links[1].Speed != policy.QDR {
		t.Errorf("links %+v", p.Links)
	}
	if len(p.Drained) != 2 || p.Drained[0].At != (policy.Place{Name: "spine 1"}) || p.Drained[1].At != (policy.Place{Switch: 0x200002}) {
		t.Errorf("drained %+v", p.Drained)
	}
	if got := string(WriteYAML(p)); got != everySetting {
		t.Errorf("written (-read +written)\n%s", cmp.Diff(everySetting, got))
	}
	usual := mustRead(t, "version: 1\nsettings: {packet_life_time: 18, part_enforce: both}\n")
	if asked, want := usual.Asked(), policy.DefaultSettings(); !asked.Equal(&want) || strings.Contains(string(WriteYAML(usual)), "settings") {
		t.Errorf("%+v\n%s", asked, WriteYAML(usual))
	}
	if one := mustRead(t, "version: 1\nsettings: {sm_sl: 2}\n").Asked(); one.LifeTimeValue != 18 || one.MasterSMSL != 2 || !one.UsesLanes() {
		t.Errorf("%+v", one)
	}
}

const everyPath = `version: 1
default: limited
settings:
  qos_levels:
    - {sl: 1, share: 30%}
    - {sl: 4, share: 50%}
  qos_enforce: true
partitions:
  - name: red
    pkey: 0x0010
    sl: 1
    rate_limit: 5
    service_ids:
      - {id: iser, sl: 4}
      - {id: "0x10-0x1f", sl: 0}
      - {id: "0xffffffffffffffff", sl: 2}
    ipoib: {mtu: 2048, rate: 5, sl: 1, qkey: 0xb1b, tclass: 0, flow_label: 0}
services:
  - name: disks
    rate_limit: 25
    offered_by:
      - 0x0000000000000001
    to: [red]
`

// Shares, limits and the levels of services are read, and what is written reads the same.
func TestLevelsAndLimits(t *testing.T) {
	p := mustRead(t, everyPath)
	asked := p.Asked()
	if d := cmp.Diff([]policy.Level{{SL: 1, Share: 30}, {SL: 4, Share: 50}}, asked.Levels); d != "" || !asked.EnforceLevels || !asked.UsesLanes() {
		t.Errorf("settings %+v\n%s", asked, d)
	}
	red, limit := &p.Partitions[0], func(gbps int) ib.Rate {
		r, err := ib.RateFromGbps(gbps * 10)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if len(red.ServiceLevels) != 3 || red.RateLimit != limit(5) || red.ServiceLevels[0].SL != 4 || red.ServiceLevels[0].First != 0x1060CBC ||
		red.ServiceLevels[1].First != 0x10 || red.ServiceLevels[1].Last != 0x1F || red.ServiceLevels[2].First != 1<<64-1 {
		t.Errorf("partition %+v", red)
	}
	if disks := &p.Partitions[1]; disks.Service != "disks" || disks.RateLimit != limit(25) || p.Services[0].RateLimit != limit(25) {
		t.Errorf("service %+v", disks)
	}
	if d := cmp.Diff([]ib.SL{0, 1, 2, 4}, p.Levels()); d != "" {
		t.Errorf("levels\n%s", d)
	}
	if got := string(WriteYAML(p)); got != everyPath {
		t.Errorf("written (-read +written)\n%s", cmp.Diff(everyPath, got))
	}
	if slow := mustRead(t, "version: 1\npartitions: [{name: a, rate_limit: 2.5, ipoib: true}]\n").Partitions[0]; slow.Multicast[0].Rate != slow.RateLimit {
		t.Errorf("group of a slow partition: %+v", slow.Multicast)
	}
}

// What no link could give, and what says two things of one path, is refused with its place.
func TestBadLevelsAndLimits(t *testing.T) {
	for text, want := range map[string]string{
		"settings: {qos_levels: []}":                                                           "qos_levels of nothing; expected at least one level",
		"settings: {qos_levels: [{sl: 1}]}":                                                    "an incomplete entry of qos_levels; expected sl and share",
		"settings: {qos_levels: [{share: 4}]}":                                                 "an incomplete entry of qos_levels",
		"settings: {qos_levels: [{sl: 1, share: 0}]}":                                          `"0" for share; expected a share of a link from 1 to 100 %`,
		"settings: {qos_levels: [{sl: 1, share: 101%}]}":                                       `"101%" for share`,
		"settings: {qos_levels: [{sl: 16, share: 1}]}":                                         `"16" for sl`,
		"settings: {qos_levels: [{sl: 1, share: 10}, {sl: 1, share: 10}]}":                     "2:50: SL 1 again, as at 2:30",
		"settings: {qos_levels: [{sl: 1, share: 60}, {sl: 2, share: 50}]}":                     "the shares come to 110 %, want at most 100",
		"settings: {qos_levels: [{sl: 1, share: 60}, {sl: 2, share: 40}]}":                     "leaves nothing for SL 0",
		"settings: {max_op_vls: 2, qos_levels: [{sl: 1, share: 60}, {sl: 2, share: 20}]}":      "3 levels with SL 0, each of which needs a VL, but max_op_vls 2 allows 2",
		`settings: {qos_levels: [{sl: 1, share: 60}], qos_vlarb_low: "0:4"}`:                   "qos_levels with qos_sl2vl, qos_high_limit",
		"settings: {qos_levels: [{sl: 1, share: 60}], qos_high_limit: 3}":                      "qos_levels with qos_sl2vl, qos_high_limit",
		"settings: {qos_levels: [{sl: 1, share: 60, weight: 3}]}":                              `key "weight" of an entry of qos_levels`,
		"settings: {qos_enforce: 3}":                                                           `"3" for qos_enforce; expected true or false`,
		"partitions: [{name: a, rate_limit: 3}]":                                               `2:36: "3" for rate_limit`,
		"partitions: [{name: a, rate_limit: 5, ipoib: {rate: 10}}]":                            "a group of rate 10 in a partition with rate_limit 5; expected a rate of at most 5",
		"partitions: [{name: a, service_ids: [{id: nfs, sl: 1}]}]":                             `"nfs" for id; expected a service ID 0x..., a range 0x...-0x..., or sdp, rds or iser`,
		"partitions: [{name: a, service_ids: [{id: 0x5-0x4, sl: 1}]}]":                         `"0x5-0x4", which ends before it begins, for id`,
		"partitions: [{name: a, service_ids: [{id: 0x10000000000000000, sl: 1}]}]":             "for id",
		"partitions: [{name: a, service_ids: [{id: 0x5}]}]":                                    "an incomplete entry of service_ids; expected id and sl",
		"partitions: [{name: a, service_ids: [{id: 0x5-0x9, sl: 1}, {id: 0x9, sl: 2}]}]":       "0x9, as at 2:43; expected service IDs that no earlier entry has",
		"partitions: [{name: a, service_ids: [{id: sdp, sl: 16}]}]":                            `"16" for sl`,
		"services: [{name: a, rate_limit: 7, offered_by: [0x1], to: [b]}]\ngroups: {b: [0x2]}": `"7" for rate_limit`,
	} {
		if _, err := ReadYAML([]byte("version: 1\n"+text+"\n"), "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// What no device could hold, or would have nothing sent, is refused with its place.
func TestBadSettings(t *testing.T) {
	for line, want := range map[string]string{
		"packet_life_time: 32":   `"32" for packet_life_time; expected a number from 0 to 31`,
		"part_enforce: off":      `"off" for part_enforce; expected in, out or both`,
		`qos_vlarb_low: "0:64"`:  "VL 1, which service level 1 takes on a link of 2 VLs, has no weight",
		`qos_vlarb_low: "15:4"`:  `qos_vlarb_low: "15:4", want VL:WEIGHT`,
		`qos_vlarb_low: "0:256"`: `"0:256", want VL:WEIGHT`,
		`qos_sl2vl: "0,1"`:       "2 VLs, want one for each of 16 service levels",
		`{sm_sl: 15, qos_sl2vl: "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"}`: "sm_sl 15, which qos_sl2vl drops",
		"master_sm_lid: 0":            `"0" for master_sm_lid; expected a number from 0x1 to 0xbfff`,
		"master_sm_lid: 0xc000":       `"0xc000" for master_sm_lid; expected a number from 0x1 to 0xbfff`,
		"m_key_protection_level: 0":   "m_key_protection_level",
		"max_op_vls: 0":               "max_op_vls",
		"link_width: 3x":              `"3x" for a width`,
		"links: [{at: \"leaf-1:5\"}]": "an incomplete entry of links",
		"links: [{width: 1x}]":        "an incomplete entry of links",
		"links: [{at: \"a:1\", width: 1x}, {at: \"a:1\", speed: sdr}]": "a:1 again",
		`drain: [a, "a"]`: `"a", as at`,
		`drain: ["0xzz"]`: `"0xzz" for drain`,
		`drain: [""]`:     `"", as at`,
		"balance: some":   `"some" for balance; expected all or tenants`,
		"life_time: 3":    `key "life_time" of settings`,
	} {
		if !strings.HasPrefix(line, "{") {
			line = "{" + line + "}"
		}
		if _, err := ReadYAML([]byte("version: 1\nsettings: "+line+"\n"), "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}
