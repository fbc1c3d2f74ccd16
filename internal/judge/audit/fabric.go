package audit

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// fabricChecks are those of identity, cabling, addresses, routes and virtual lanes.
var fabricChecks = []check{
	{number: 20, name: "switch-link-foreign", title: "A link between switches is not on the list", severity: High, needs: needsCables,
		how:    "cables between switches, against the topology file or else the earlier reading",
		advice: "look at the cable; a foreign switch passes every partition", run: (*auditor).switchLinkForeign},
	{number: 43, name: "duplicate-guid", title: "One GUID is claimed by two devices", severity: Critical,
		how:    "NodeInfo by different routes: one node GUID on two devices, or one port GUID on two ports",
		advice: "find the impostor by its cable: which of the two is genuine cannot be told from the wire", run: (*auditor).duplicateGUID},
	{number: 44, name: "guid-elsewhere", title: "A device is not where it is cabled", severity: Critical, needs: needsCables,
		how:    "node GUID, switch and port of each CA and router, against the topology file or else the earlier reading",
		advice: "look at the cable: a host that takes another's GUID gets its partitions", run: (*auditor).guidElsewhere},
	{number: 45, name: "alias-guid", title: "A port has the GUID of another, or one that is not assigned to it, as an alias", severity: Critical,
		how:    "GUIDInfo of end ports: an alias that is another port's GUID or alias; with aliases in the policy, also one that it does not give the port",
		advice: "remove the alias; SA and address handles would follow it to the wrong port", run: (*auditor).aliasGUID},
	{number: 46, name: "device-changed", title: "A device is new, or has changed", severity: Medium, profile: Strict, needs: needsEarlier,
		how:    "NodeInfo against the earlier reading: a new node GUID, or another type, VendorID, DeviceID, Revision or number of ports",
		advice: "make sure that the change was planned", run: (*auditor).deviceChanged},
	{number: 47, name: "lid-overlap", title: "Two ports share an address, or a port has none or has moved", severity: High,
		how:    "PortInfo.LID and LMC of end ports in use: ranges that overlap, LID 0 or beyond the unicast LIDs, low bits set; with an earlier reading also a changed LID",
		advice: "let the manager assign LIDs again, and clear its file of LIDs if it repeats the error", run: (*auditor).lidOverlap},
	{number: 57, name: "route-broken", title: "A route ends nowhere or in a loop", severity: High,
		how:    "forwarding tables, from every switch before a host to every LID of every end port; multicast forwarding tables that loop",
		advice: "let the manager compute routes again; a loop can also stop other tenants", run: (*auditor).routeBroken},
	{number: 58, name: "credit-loop", title: "Routes form a credit loop", severity: High,
		how:    "forwarding tables, multicast too, and SLtoVLMappingTables of every service level, as a graph of links and virtual lanes that wait for each other: with a loop the fabric can deadlock. Unknown if the loop uses several VLs: service levels may break it",
		advice: "look at the loop with ibwarden show routing; use a routing engine that cannot deadlock", run: (*auditor).creditLoop},
	{number: 59, name: "vl-shared", title: "Partitions of different service levels share a VL", severity: Medium, profile: Strict, needs: needsLevels,
		how:    "SLtoVLMappingTables of links in use: the VL of each level of a partition",
		advice: "have the manager map the service levels to separate VLs, or accept that tenants slow each other down", run: (*auditor).laneShared},
	{number: 60, name: "raw-packets", title: "A switch port lets packets without a partition pass", severity: High, profile: Tenant,
		how:    "PortInfo.FilterRawInbound and FilterRawOutbound of switch ports that face a CA or router: 0",
		advice: "turn both filters on where SwitchInfo says that the switch can; raw packets carry no P_Key to check", run: (*auditor).rawPackets},
}

func (a *auditor) switchLinkForeign() {
	cables := a.cables()
	for _, l := range a.f.Links() {
		if l.A.Node.Switch != nil && l.B.Node.Switch != nil && cables[endOf(l.A)] != endOf(l.B) {
			a.found(place(l.A), "it leads to %s, and not on the list", place(l.B))
		}
	}
	for _, p := range a.external() {
		if p.FacesStranger() {
			a.unknown(place(p), "the link is up, and the device behind it did not answer")
		}
	}
}

func (a *auditor) duplicateGUID() {
	for _, n := range a.f.Nodes {
		if n.Contested {
			a.found(nodePlace(n), "a second device claims this node GUID")
		}
	}
	ports := a.f.EndPorts()
	for i := 1; i < len(ports); i++ {
		if p := ports[i]; p.GUID == ports[i-1].GUID {
			a.found(place(p), "%s has the same port GUID", ports[i-1])
		}
	}
}

func (a *auditor) guidElsewhere() {
	cables := a.cables()
	for _, p := range a.hosts() {
		at, listed := cables[endOf(p)]
		switch {
		case p.Peer == nil:
		case !listed:
			a.found(place(p), "cabled to %s; the list has no such port", place(p.Peer))
		case at != endOf(p.Peer):
			a.found(place(p), "cabled to %s; on the list it is at node %s port %d", place(p.Peer), at.Node, at.Port)
		}
	}
}

func (a *auditor) aliasGUID() {
	owner := map[uint64]*observed.Port{}
	ports := a.f.EndPorts()
	for _, p := range ports {
		if owner[uint64(p.GUID)] == nil {
			owner[uint64(p.GUID)] = p
		}
	}
	for _, p := range ports {
		if !a.info(p) {
			continue
		}
		for block := range p.GUIDBlocks() {
			t, read := p.GUIDInfo[uint32(block)]
			if !read {
				a.unknown(place(p), "GUIDInfo block %d was not read", block)
			}
			for i, g := range t.GUIDs {
				if g == 0 || block == 0 && i == 0 {
					continue
				}
				if given := a.intent.Aliases; given != nil && !slices.Contains(given[p.GUID], ib.PortGUID(g)) {
					a.found(place(p), "GUIDInfo[%d] is %s, which the policy does not give it", block*smp.GUIDsPerBlock+i, ib.PortGUID(g))
				}
				if other := owner[g]; other == nil {
					owner[g] = p
				} else if other != p {
					a.found(place(p), "GUIDInfo[%d] is %s, which is a GUID of %s", block*smp.GUIDsPerBlock+i, ib.PortGUID(g), place(other))
				}
			}
		}
	}
}

func (a *auditor) deviceChanged() {
	for _, n := range a.f.Nodes {
		old := a.options.Earlier.Node(n.GUID())
		switch x := &n.Info; {
		case old == nil:
			a.found(nodePlace(n), "%s of VendorID 0x%06x, DeviceID 0x%04x: not in the earlier reading", x.NodeType, x.VendorID, x.DeviceID)
		case x.NodeType != old.Info.NodeType || x.VendorID != old.Info.VendorID || x.DeviceID != old.Info.DeviceID ||
			x.Revision != old.Info.Revision || x.NumPorts != old.Info.NumPorts:
			o := &old.Info
			a.found(nodePlace(n), "%s of %d ports, VendorID 0x%06x, DeviceID 0x%04x, Revision 0x%x; it was %s of %d ports, 0x%06x, 0x%04x, 0x%x",
				x.NodeType, x.NumPorts, x.VendorID, x.DeviceID, x.Revision, o.NodeType, o.NumPorts, o.VendorID, o.DeviceID, o.Revision)
		}
	}
}

func (a *auditor) lidOverlap() {
	var ports []*observed.Port
	for _, p := range a.f.EndPorts() {
		if !a.info(p) || p.Num != 0 && p.Info.PortState != smp.PortArmed && p.Info.PortState != smp.PortActive {
			continue
		}
		if first := p.Info.LID; !first.IsUnicast() || int(first)%(1<<p.Info.LMC) != 0 {
			a.found(place(p), "LID %s, LMC %d", first, p.Info.LMC)
			continue
		}
		ports = append(ports, p)
		if a.options.Earlier == nil {
			continue
		}
		if old := a.earlier(p); old != nil && old.Info.LID != 0 && old.Info.LID != p.Info.LID {
			a.found(place(p), "LID %s, %s in the earlier reading", p.Info.LID, old.Info.LID)
		}
	}
	slices.SortStableFunc(ports, func(x, y *observed.Port) int { return cmp.Compare(x.Info.LID, y.Info.LID) })
	for i := 1; i < len(ports); i++ {
		if before := ports[i-1]; before.Answers(ports[i].Info.LID) {
			a.found(place(ports[i]), "LID %s is also one of %s", ports[i].Info.LID, place(before))
		}
	}
}

func (a *auditor) laneShared() {
	levels := a.intent.levels()
	order := slices.Sorted(maps.Keys(levels))
	for _, p := range a.external() {
		if p.Peer == nil || !a.info(p) || !p.IsUp() {
			continue
		}
		for in := range p.Node.Ports {
			if in == int(p.Num) || in > 0 && !p.Node.Ports[in].IsUp() {
				continue // no packet takes this way
			}
			t, read := p.SLToVL[ib.PortNum(in)]
			if !read && p.Info.VLCap > 1 { // a port of one virtual lane has no tables: all levels share it
				a.unknown(place(p), "the SLtoVLMappingTable for packets from port %d was not read", in)
				continue
			}
			if x, y, shared := sharedLane(order, t); shared {
				a.found(place(p), "SL %d (partition %s) and SL %d (partition %s) from port %d both take VL %d", x, levels[x], y, levels[y], in, t.VLs[x])
				break
			}
		}
	}
}

// sharedLane finds two of the levels on one virtual lane; virtual lane 15 drops packets.
func sharedLane(levels []ib.SL, t smp.SLToVLMappingTable) (x, y ib.SL, shared bool) {
	for i, x := range levels {
		for _, y := range levels[i+1:] {
			if int(y) < len(t.VLs) && t.VLs[x] == t.VLs[y] && t.VLs[x] != ib.VLManagement {
				return x, y, true
			}
		}
	}
	return 0, 0, false
}

func (a *auditor) rawPackets() {
	a.guards(func(p, host *observed.Port) {
		if in, out := p.Info.FilterRawInbound, p.Info.FilterRawOutbound; !(in && out) {
			i := &p.Node.Switch.Info
			a.found(place(p), "FilterRawInbound %s, Outbound %s before %s; FilterRawInboundCap %s, OutboundCap %s",
				bit(in), bit(out), host, bit(i.FilterRawInboundCap), bit(i.FilterRawOutboundCap))
		}
	})
}
