package audit

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	whySA = "it needs queries of subnet administration; the audit sends only SMPs"
	whyMC = "groups and their partitions are records of subnet administration; the audit sends only SMPs"
)

// managerChecks are those of subnet managers, of who may speak to them, and of
// multicast groups.
var managerChecks = []check{
	{number: 35, name: "rogue-manager", title: "A subnet manager runs where none should", severity: Critical,
		how:    "PortInfo.CapabilityMask of end ports: IsSM on a port that --manager does not list or, without a list, that is not the master's; SMInfo has its state",
		advice: "stop it, or list its port if it belongs there; then find out who may open that umad device", run: (*auditor).rogueManager},
	{number: 36, name: "two-masters", title: "Ports obey different managers, or two are master", severity: Critical,
		how:    "PortInfo.MasterSMLID of end ports: different values, or a LID that no port has; SMInfo: more than one in state Master",
		advice: "leave one manager, and let it sweep the whole fabric", run: (*auditor).twoMasters},
	{number: 37, name: "host-sends-smps", title: "Programs on a host may send subnet management packets", severity: High,
		why: "it is visible on the host, or in its adapter's firmware settings"},
	{number: 38, name: "umad-in-tenant", title: "A tenant's container or machine has the management devices", severity: High,
		why: "device nodes are visible on the host only"},
	{number: 39, name: "sa-leaks-map", title: "Subnet administration reveals tenants to each other", severity: High, why: whySA},
	{number: 40, name: "sa-path-across", title: "Subnet administration gives paths between ports that share no partition", severity: Medium, why: whySA},
	{number: 41, name: "sa-spoofed-requester", title: "Subnet administration believes a requester's false address", severity: High, why: whySA},
	{number: 42, name: "sa-no-quota", title: "Subnet administration has no limits for one requester", severity: Medium, why: whySA},
	{number: 48, name: "multicast-leak", title: "A multicast LID leads to ports without a partition in common", severity: Critical, profile: Tenant,
		how:    "MulticastForwardingTables, and P_KeyTables of the hosts that an MLID leads to: no partition that holds them all, at least one as a full member",
		advice: "let the manager compute the group's tree again from its members", run: (*auditor).multicastLeak},
	{number: 49, name: "mlid-shared", title: "Groups of two partitions share a multicast LID", severity: High, why: whyMC},
	{number: 50, name: "group-open", title: "A group takes members without its partition", severity: High, why: whyMC},
	{number: 51, name: "qkey-violations", title: "A port received packets with a wrong Q_Key", severity: Medium,
		how:    "PortInfo.Q_KeyViolations of CA and router ports: not 0, or grown since the earlier reading",
		advice: "look for trap 258 in the manager's log: it names sender and receiver", run: (*auditor).qkeyViolations},
}

func (a *auditor) rogueManager() {
	for _, p := range a.speakers() {
		switch {
		case a.managers()[p.GUID]:
		case p.SMInfoRead:
			a.found(place(p), "IsSM is set; SMInfo: %s, priority %d, GUID %s", stateName(p.SMInfo.SMState), p.SMInfo.Priority, p.SMInfo.GUID)
		default:
			a.found(place(p), "IsSM is set; SMInfo was not answered")
		}
	}
}

func stateName(s smp.SMState) string {
	switch s {
	case smp.SMNotActive:
		return "not active"
	case smp.SMDiscovering:
		return "discovering"
	case smp.SMStandby:
		return "standby"
	case smp.SMMaster:
		return "master"
	}
	return "unknown state"
}

func (a *auditor) twoMasters() {
	chosen := master(a.f)
	there := false // the port with that LID, or one that may have it
	for _, p := range a.f.EndPorts() {
		if !a.info(p) {
			there = true
			continue
		}
		there = there || chosen != 0 && p.Answers(chosen)
		if p.Info.LID != 0 && p.Info.MasterSMLID != chosen {
			a.found(place(p), "MasterSMLID %s; most ports have %s", p.Info.MasterSMLID, chosen)
		}
	}
	if chosen != 0 && !there {
		a.found("the fabric", "most ports have MasterSMLID %s, and no port has that LID", chosen)
	}
	var first *observed.Port
	for _, p := range a.speakers() {
		switch {
		case !p.SMInfoRead:
			a.unknown(place(p), "SMInfo was not read")
		case p.SMInfo.SMState != smp.SMMaster:
		case first != nil:
			a.found(place(p), "master, and so is %s", place(first))
		default:
			first = p
		}
	}
}

func (a *auditor) qkeyViolations() {
	for _, p := range a.hosts() {
		a.counter(p, "Q_KeyViolations", func(i *smp.PortInfo) uint16 { return i.QKeyViolations })
	}
}
