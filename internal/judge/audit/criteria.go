package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Criteria is a list of what somebody else asks of a fabric.
type Criteria struct {
	// Source is where it is published.
	Source string
	lines  []line
}

// line is one of the criteria, with the checks that answer it.
type line struct {
	name, what string
	checks     []string
	unread     string // what no check can read of it, and why
	keys       bool   // some host has to hold a P_Key that is not the default partition's
}

// Checks that several criteria need.
var (
	tenantsApart = []string{"failed-open", "default-full", "enforcement-off", "enforcement-incapable", "bridge-host", "shared-full"}
	mkeyEach     = []string{"mkey-zero", "mkey-shared"}
	mkeyRandom   = []string{"mkey-zero", "mkey-shared", "mkey-weak", "mkey-readable"}
	classKeys    = []string{"class-keys"}
)

const (
	noKeyOnWire = "the key is in the configuration of the manager, and on no device"
	noSetting   = "it is a setting of UFM"
)

// secured is UFM's profile for clouds of machines that tenants have to themselves.
var secured = []line{
	{"mkey", "M_Keys, random", mkeyRandom, "", false},
	{"vskey", "vendor-specific keys, random", classKeys, "", false},
	{"pmkey", "performance management keys, random", classKeys, "", false},
	{"cckey", "congestion control keys, random", classKeys, "", false},
	{"n2nkey", "node to node (class C) keys, random", classKeys, "", false},
	{"amkey", "SHARP's aggregation management and job keys, random", classKeys, "", false},
	{"smkey", "SM_Key, random", []string{"sm-key-default"}, "", false},
	{"sakey", "SA_Key, random", nil, noKeyOnWire, false},
	{"allowed-guids", "only listed GUIDs in the fabric", []string{"guid-elsewhere", "duplicate-guid"}, "", false},
	{"service-key", "a key for who registers a service", nil, noKeyOnWire, false},
	{"sa-trust", "subnet administration trusts no host", []string{"sa-leaks-map", "sa-path-across", "sa-spoofed-requester"}, "", false},
	{"mad-limit", "limits on management packets, for each source LID", []string{"sa-no-quota"}, "", false},
}

// criteria are the lists, by name: facts and numbers of pages that are public.
var criteria = map[string]Criteria{
	"clustermax": {"https://www.clustermax.ai/criteria/security, what it asks of InfiniBand", slices.Concat([]line{
		{"pkeys", "P_Keys set for tenants", tenantsApart, "", true},
		{"vf-mads", "virtual functions without QP0 and management packets", []string{"host-sends-smps", "umad-in-tenant"}, "", false},
		{"ufm-profile", "UFM's profile Secured Bare Metal Cloud is on", nil, noSetting + "; the lines that follow are what it does", false},
	}, secured)},
	"nvidia-guidelines": {"NVIDIA InfiniBand Security Overview and Guidelines, Practical Guidelines 1 and 2", []line{
		{"1", "P_Keys for each tenant", tenantsApart, "", true},
		{"1.1", "the manager is a full member of the default partition", []string{"default-members"}, "", false},
		{"1.2", "hosts are limited members of the default partition", []string{"default-full"}, "", false},
		{"2 m_key_per_port", "an M_Key for each port", mkeyEach, "", false},
		{"2 m_key", "M_Keys from a random seed", []string{"mkey-zero", "mkey-weak"}, "", false},
		{"2 m_key_protection_level", "M_KeyProtectBits 2", []string{"mkey-zero", "mkey-readable"}, "", false},
		{"2 vs_key_enable", "keys for tools' management packets", classKeys, "", false},
		{"2 n2n_key_enable", "keys for packets from node to node", classKeys, "", false},
	}},
	"ufm-secured": {"UFM's profile Secured Bare Metal Cloud, https://developer.nvidia.com/blog/one-click-multi-tenant-security-with-nvidia-quantum-infiniband", secured},
	"sdn04": {"https://github.com/NVIDIA/ai-cloud-validation, SDN04-04 and SDN04-05", []line{
		{"SDN04-04", "each partition is one tenant's, and none is the default one", []string{"tenants-joined", "policy-drift", "failed-open"}, "", true},
		{"SDN04-05 p_key", "P_Keys configured", []string{"failed-open"}, "", true},
		{"SDN04-05 management_key", "M_Keys configured", mkeyEach, "", false},
		{"SDN04-05 aggregation_management_key", "SHARP's aggregation management key configured", classKeys, "", false},
		{"SDN04-05 vendor_specific_key", "vendor-specific keys configured", classKeys, "", false},
		{"SDN04-05 congestion_control_key", "congestion control keys configured", classKeys, "", false},
		{"SDN04-05 node2node_key", "node to node keys configured", classKeys, "", false},
		{"SDN04-05 manager2node_key", "manager to node keys configured", classKeys, "", false},
	}},
}

// CriteriaNames are the names of the lists, in the order of the alphabet.
func CriteriaNames() []string { return slices.Sorted(maps.Keys(criteria)) }

// ParseCriteria finds a list by its name.
func ParseCriteria(name string) (Criteria, error) {
	c, ok := criteria[name]
	if !ok {
		return c, fmt.Errorf("%q: want %s", name, strings.Join(CriteriaNames(), ", "))
	}
	return c, nil
}

// Result is what an audit says to a criterion.
type Result string

// The results. What was not read is never a pass.
const (
	Pass        Result = "pass"
	Fail        Result = "fail"
	NotReadable Result = "not readable"
)

// CriterionAnswer is a line of a list, and the result with its evidence.
type CriterionAnswer struct {
	Line, What string
	Result     Result
	Evidence   string
}

// Against answers each line of a list from the checks of the report: a line fails where one of
// its checks found something, and passes where all were made and found nothing.
func (r *Report) Against(c Criteria) []CriterionAnswer {
	out := make([]CriterionAnswer, 0, len(c.lines))
	for _, l := range c.lines {
		a := CriterionAnswer{Line: l.name, What: l.what}
		a.Result, a.Evidence = r.answer(&l)
		out = append(out, a)
	}
	return out
}

func (r *Report) answer(l *line) (Result, string) {
	var failed, unread []string
	if l.unread != "" {
		unread = append(unread, l.unread)
	}
	if l.keys && !r.partitioned {
		failed = append(failed, "no host holds a P_Key other than the default partition's")
	}
	for _, name := range l.checks {
		found, unknown := r.foundBy(name)
		switch {
		case found != "":
			failed = append(failed, found)
		case unknown != "":
			unread = append(unread, unknown)
		}
	}
	switch {
	case len(failed) > 0:
		return Fail, strings.Join(failed, "; ")
	case len(unread) > 0:
		return NotReadable, strings.Join(unread, "; ")
	}
	return Pass, "found nothing: " + strings.Join(l.checks, ", ")
}

// foundBy is what a check found first and how much, or why it is not known whether there is
// anything to find.
func (r *Report) foundBy(name string) (found, unknown string) {
	if slices.Contains(r.Passed, name) {
		return "", ""
	}
	counts := [2]int{}
	first := [2]*Finding{}
	for i := range r.Findings {
		f, kind := &r.Findings[i], 0
		if f.Check != name {
			continue
		}
		if f.Severity == Unknown {
			kind = 1
		}
		if counts[kind]++; first[kind] == nil {
			first[kind] = f
		}
	}
	say := func(kind int) string {
		text := fmt.Sprintf("%s: %s: %s", name, first[kind].Where, first[kind].Read)
		if counts[kind] > 1 {
			text += fmt.Sprintf(", and %d more", counts[kind]-1)
		}
		if counts[0]+counts[1] == MaxPerCheck {
			text += " at least"
		}
		return text
	}
	switch {
	case first[0] != nil:
		return say(0), ""
	case first[1] != nil:
		return "", say(1)
	}
	for _, x := range r.NotCheckable {
		if x.Check == name {
			return "", name + ": " + x.Reason
		}
	}
	return "", name + ": not checked in the profile " + r.Profile.String()
}
