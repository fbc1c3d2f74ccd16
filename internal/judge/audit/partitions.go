package audit

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// partitionChecks are those of P_Key tables and enforcement.
var partitionChecks = []check{
	{number: 1, name: "default-full", title: "A host is a full member of the default partition", severity: Critical,
		how:    "P_KeyTable of each CA and router port: 0xffff on a port without a manager, unless the policy gives it",
		advice: "make the port a limited member (0x7fff) of the default partition", run: (*auditor).defaultFull},
	{number: 2, name: "tenants-joined", title: "Two end ports can talk that the policy keeps apart", severity: Critical, needs: needsPolicy,
		how:    "P_KeyTables of all end ports: a common partition, one side full, that the policy does not give both",
		advice: "remove the key from the table at fault; `ibwarden prove` has every pair and its path", run: (*auditor).tenantsJoined},
	{number: 3, name: "enforcement-off", title: "A switch port does not enforce its host's partitions", severity: Critical,
		how:    "PortInfo.PartitionEnforcementInbound and Outbound of switch ports that face a CA or router: 0 where the switch can enforce",
		advice: "turn both bits on, after the switch port's P_KeyTable holds the host's partitions", run: (*auditor).enforcementOff},
	{number: 4, name: "enforcement-incapable", title: "A switch before hosts cannot enforce partitions", severity: Critical,
		how:    "SwitchInfo.PartitionEnforcementCap, InboundEnforcementCap, OutboundEnforcementCap: 0 on a switch with a port that faces a CA or router",
		advice: "move hosts that are not trusted to switches that can enforce; no setting helps", run: (*auditor).enforcementIncapable},
	{number: 5, name: "enforcement-overflow", title: "Enforcement is off because the host's keys fill the switch port's table", severity: Critical,
		how:    "enforcement bits of 0 before a host with SwitchInfo.PartitionEnforcementCap keys or more",
		advice: "give the host fewer partitions than the switch has entries; some managers turn enforcement off here without an error", run: (*auditor).enforcementOverflow},
	{number: 6, name: "keys-do-not-fit", title: "An end port lacks keys because its table is too small", severity: High, needs: needsPolicy,
		how:    "partitions that the policy gives a port, against NodeInfo.PartitionCap",
		advice: "put the port into fewer partitions; what does not fit is dropped or refused", run: (*auditor).keysDoNotFit},
	{number: 7, name: "switch-wider-than-host", title: "A switch port lets its host use partitions that the host is not in", severity: Critical,
		how:    "P_KeyTable of a switch port that faces a host, minus the host's own: a host that forges its table can use the difference",
		advice: "write the host's partitions, and no others, to the switch port", run: (*auditor).switchWider},
	{number: 8, name: "switch-narrower-than-host", title: "A switch port stops partitions that its host is in", severity: High,
		how:    "P_KeyTable of a host, minus that of the enforcing switch port: packets of the difference are dropped",
		advice: "add the keys to the switch port, or remove them from the host", run: (*auditor).switchNarrower},
	{number: 9, name: "both-memberships", title: "A table holds one partition as full and as limited", severity: High,
		how:    "P_KeyTable of each end port: two entries that differ only in the membership bit",
		advice: "keep the limited key unless the port is meant to be full: the full one wins", run: (*auditor).bothMemberships},
	{number: 10, name: "policy-drift", title: "A table is not what the policy says", severity: Critical, needs: needsPolicy,
		how:    "P_KeyTables of end ports and their switch ports, against the policy: foreign and missing keys",
		advice: "apply the policy again, and find out who wrote the table", run: (*auditor).policyDrift},
	{number: 11, name: "stale-keys", title: "A switch port without a host still holds tenant keys", severity: High,
		how:    "P_KeyTable of switch ports whose link is Down: any key but the default partition's; with an earlier reading also the same keys before another host",
		advice: "clear the table: the next host on this port would get these partitions", run: (*auditor).staleKeys},
	{number: 12, name: "idle-port-open", title: "An unused switch port would let a host in", severity: High, profile: Strict,
		how:    "PortInfo.PortPhysicalState of switch ports whose link is Down: not Disabled, with a tenant's key or 0xffff in the table",
		advice: "disable the port, or leave no full key in its table and turn enforcement on", run: (*auditor).idlePortOpen},
	{number: 13, name: "bridge-host", title: "One node is a full member of two tenants", severity: Critical,
		how:    "P_KeyTables of all ports of a node: full in two partitions of two nodes or more, neither a subset of the other, and not by the policy",
		advice: "make the node a limited member of one of the two, or share it through a separate partition", run: (*auditor).bridgeHost},
	{number: 14, name: "shared-full", title: "A shared partition joins tenants that are full members of it", severity: Critical,
		how:    "two full members of one partition, each full in another that the other is not in",
		advice: "make the tenants limited members of the shared partition, and only the service a full one", run: (*auditor).sharedFull},
	{number: 15, name: "default-members", title: "The full members of the default partition are not the managers", severity: High,
		how:    "P_KeyTables of all end ports: those with 0xffff, compared with the policy or, without one and if there are limited members, with the managers",
		advice: "keep 0xffff to the managers: every limited member can talk to every full one", run: (*auditor).defaultMembers},
	{number: 16, name: "index-zero", title: "Index 0 of a host's table holds no key", severity: Medium,
		how:    "P_KeyTable[0] of each CA and router port that holds any key: 0x0000 or 0x8000",
		advice: "put a key there that the host's programs may use: many use index 0 by default", run: (*auditor).indexZero},
	{number: 17, name: "invalid-entries", title: "A table holds invalid entries", severity: Low,
		how:    "P_KeyTables of end ports: 0x8000, or one key twice",
		advice: "clear the entry; some manager writes tables without checking them", run: (*auditor).invalidEntries},
	{number: 18, name: "key-changed-hands", title: "A key was given to other ports while an old port still holds it", severity: Critical, needs: needsEarlier,
		how:    "a partition whose end ports in the earlier reading and now have none in common",
		advice: "give new tenants keys that no port had before, and do not reuse old ones until no table holds them", run: (*auditor).keyChangedHands},
	{number: 19, name: "switch-in-tenant", title: "The management port of a switch is in a tenant's partition", severity: High,
		how:    "P_KeyTable of port 0 of each switch: any key but the default partition's, unless the policy gives it",
		advice: "remove the key: tenants should not reach the management of the switch", run: (*auditor).switchInTenant},
	{number: 21, name: "router-in-tenant", title: "A router port holds tenant keys", severity: High,
		how:    "P_KeyTable of each router port: any key but the default partition's, unless the policy gives it",
		advice: "make sure that the key belongs to the same tenant in every subnet behind the router, or remove it", run: (*auditor).routerInTenant},
	{number: 22, name: "virtual-ports", title: "Virtual ports hold keys of their own", severity: High,
		how:    "PortInfo.CapabilityMask2 of each CA port: tables of virtual ports need a vendor's attributes, and are not read",
		advice: "compare the keys of each virtual port with the policy, in the manager that assigned them", run: (*auditor).virtualPorts},
}

func (a *auditor) defaultFull() {
	for _, p := range a.hosts() {
		if a.managers()[p.GUID] && a.intent.Partitions == nil {
			continue
		}
		for _, e := range a.entries(p) {
			if _, wanted := a.allows(p.GUID, e.key.Base()); e.key == ib.PKeyDefaultFull && !wanted {
				a.found(place(p), "P_KeyTable[%d] is %s", e.index, e.key)
			}
		}
	}
}

func (a *auditor) tenantsJoined() {
	p := a.prove()
	for i := range p.Violations {
		v := &p.Violations[i]
		note := ""
		if v.Note != "" {
			note = "; today this is stopped: " + v.Note
		}
		a.found(v.From.String()+" to "+v.To.String(), "%s in P_KeyTable[%d] of %s (node GUID %s)%s", v.At.PKey, v.At.Index, v.At.Name, v.At.Node, note)
	}
	for range p.Counts.Violations - len(p.Violations) {
		a.found("more pairs", "counted and not listed")
	}
	for _, u := range p.Unknown {
		a.unknown(u.Name, "%s", u.Reason)
	}
}

// guards calls yield for each switch port that faces a host and whose SwitchInfo
// and PortInfo were read.
func (a *auditor) guards(yield func(guard, host *observed.Port)) {
	for _, p := range a.leaves() {
		if a.switchInfo(p.Node) && a.info(p) {
			yield(p, p.Peer)
		}
	}
}

func canEnforce(n *observed.Node) bool {
	i := &n.Switch.Info
	return i.PartitionEnforcementCap > 0 && i.InboundEnforcementCap && i.OutboundEnforcementCap
}

func (a *auditor) enforcementOff() {
	a.guards(func(p, host *observed.Port) {
		if in, out := p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound; canEnforce(p.Node) && !(in && out) {
			a.found(place(p), "PartitionEnforcementInbound %s, Outbound %s, before %s", bit(in), bit(out), host)
		}
	})
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func (a *auditor) enforcementIncapable() {
	said := map[*observed.Node]bool{}
	for _, p := range a.leaves() {
		n := p.Node
		if said[n] || !a.switchInfo(n) || canEnforce(n) {
			continue
		}
		said[n] = true
		i := &n.Switch.Info
		a.found(nodePlace(n), "PartitionEnforcementCap %d, InboundEnforcementCap %s, OutboundEnforcementCap %s",
			i.PartitionEnforcementCap, bit(i.InboundEnforcementCap), bit(i.OutboundEnforcementCap))
	}
}

func (a *auditor) enforcementOverflow() {
	a.guards(func(p, host *observed.Port) {
		if p.PKeyCap() == 0 || p.Info.PartitionEnforcementInbound && p.Info.PartitionEnforcementOutbound {
			return
		}
		if n := len(a.keys(host)); n >= p.PKeyCap() {
			a.found(place(p), "enforcement is off; %s has %d keys and the switch port %d entries", host, n, p.PKeyCap())
		}
	})
}

func (a *auditor) keysDoNotFit() {
	wanted := map[ib.PortGUID]int{}
	for _, p := range a.intent.Partitions {
		members := map[ib.PortGUID]bool{}
		for _, list := range [][]ib.PortGUID{p.Full, p.Limited} {
			for _, g := range list {
				if !members[g] {
					members[g] = true
					wanted[g]++
				}
			}
		}
	}
	for _, p := range a.f.EndPorts() {
		if n := wanted[p.GUID]; n > p.PKeyCap() {
			a.found(place(p), "PartitionCap %d; the policy gives it %d partitions", p.PKeyCap(), n)
		}
	}
}

func (a *auditor) switchWider() {
	for _, p := range a.leaves() {
		of := a.keys(p.Peer)
		for _, e := range a.entries(p) {
			if e.key.IsValid() && !holds(of, e.key.Base()) && p.Peer.PKeysKnown() {
				a.found(place(p), "P_KeyTable[%d] is %s; %s has no key of that partition", e.index, e.key, p.Peer)
			}
		}
	}
}

func (a *auditor) switchNarrower() {
	a.guards(func(p, host *observed.Port) {
		if p.PKeyCap() == 0 || !p.Info.PartitionEnforcementInbound && !p.Info.PartitionEnforcementOutbound {
			return
		}
		has := a.keys(p)
		for _, e := range a.entries(host) {
			if e.key.IsValid() && !holds(has, e.key.Base()) && p.PKeysKnown() {
				a.found(place(p), "no key of %s, which %s holds at index %d", e.key, host, e.index)
			}
		}
	})
}

func (a *auditor) bothMemberships() {
	for _, p := range a.f.EndPorts() {
		at := map[ib.PKey]int{}
		for _, e := range a.entries(p) {
			if other, ok := at[e.key^fullBit]; ok && e.key.IsValid() {
				a.found(place(p), "P_KeyTable[%d] and [%d] are %s in both memberships", other, e.index, e.key.Base())
			}
			at[e.key] = e.index
		}
	}
}

// fullBit is the membership bit of a P_Key.
const fullBit = ib.PKey(0x8000)

func (a *auditor) policyDrift() {
	p := a.prove()
	for _, e := range p.Foreign {
		a.found(e.Name+" (node GUID "+e.Node.String()+")", "P_KeyTable[%d] is %s; the policy does not give it to %s", e.Index, e.PKey, e.EndPort)
	}
	for _, m := range p.Missing {
		a.found(m.Name+" (node GUID "+m.Node.String()+")", "no %s; the policy gives it to %s", m.PKey, m.EndPort)
	}
	for range p.Counts.Foreign - len(p.Foreign) + p.Counts.Missing - len(p.Missing) {
		a.found("more places", "counted and not listed")
	}
	for _, p := range a.f.EndPorts() {
		a.entries(p) // what was not read may differ
	}
	for _, p := range a.leaves() {
		a.entries(p)
	}
}
