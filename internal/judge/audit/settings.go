package audit

import (
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// settingChecks are those of how switches and links are set.
var settingChecks = []check{
	{number: 62, name: "packets-short-lived", title: "A switch drops packets that wait for other packets", severity: High,
		how:    "SwitchInfo.LifeTimeValue, and PortInfo.HOQLife of switch ports in use: below 10 (4 ms), or LifeTimeValue shorter than HOQLife",
		advice: "have the manager set them: the factory value of switches is 0, which is 4 us, and drops packets as soon as two compete for one port", run: (*auditor).shortLived},
	{number: 63, name: "switch-link-narrower", title: "A port between switches stops partitions of the ports behind it", severity: High,
		how:    "P_KeyTables of enforcing ports between switches, against those of the end ports that the other switch reaches without this one",
		advice: "add the keys to both ends of the cable, or turn enforcement off at ports between switches", run: (*auditor).switchLinkNarrower},
	{number: 64, name: "vl-starved", title: "A VL that service levels map to is never served", severity: High, profile: Strict, needs: needsLevels,
		how:    "VLArbitrationTables of links in use, where they were written: no weight for a VL to which a service level of the policy maps",
		advice: "give the VL a weight in one of the two tables, or map the service level to another VL", run: (*auditor).laneStarved},
}

// leastLife is the least code of LifeTimeValue and HOQLife with which a switch can
// hold a packet for as long as the queues of its other ports take: 4.2 ms.
const leastLife ib.TimeValue = 10

func (a *auditor) shortLived() {
	for _, n := range a.f.Switches() {
		if !a.switchInfo(n) {
			continue
		}
		life := n.Switch.Info.LifeTimeValue
		if life < leastLife {
			a.found(nodePlace(n), "LifeTimeValue %d: %v", life, life.Duration())
		}
		for i := 1; i < len(n.Ports); i++ {
			p := &n.Ports[i]
			if p.Peer == nil || !a.info(p) || !p.IsUp() {
				continue
			}
			switch head := p.Info.HOQLife; {
			case head < leastLife:
				a.found(place(p), "HOQLife %d: %v", head, head.Duration())
			case head <= smp.TimeValueFiniteMax && life < head && life >= leastLife:
				a.found(place(p), "HOQLife %d, with a LifeTimeValue of %d: it is never reached", head, life)
			}
		}
	}
}

func (a *auditor) switchLinkNarrower() {
	for _, p := range a.external() {
		if p.Peer == nil || p.Peer.Node.Switch == nil || p.PKeyCap() == 0 || !a.info(p) ||
			!p.Info.PartitionEnforcementInbound && !p.Info.PartitionEnforcementOutbound {
			continue
		}
		has := a.keys(p)
		if !p.PKeysKnown() {
			continue // keys has entered that it was not read
		}
		told := map[ib.PKeyBase]bool{}
		for _, host := range behind(p) {
			for _, k := range a.keys(host) {
				if !holds(has, k.Base()) && !told[k.Base()] {
					told[k.Base()] = true
					a.found(place(p), "no key of %s, which %s behind it holds", k.Base(), host)
				}
			}
		}
	}
}

// behind are the end ports that the switch at the other end of p's cable reaches
// without p's own.
func behind(p *observed.Port) (ends []*observed.Port) {
	seen := map[*observed.Node]bool{p.Node: true, p.Peer.Node: true}
	for queue := []*observed.Node{p.Peer.Node}; len(queue) > 0; queue = queue[1:] {
		ends = append(ends, &queue[0].Ports[0])
		for i := 1; i < len(queue[0].Ports); i++ {
			switch q := queue[0].Ports[i].Peer; {
			case q == nil:
			case q.Node.Switch == nil:
				ends = append(ends, q)
			case !seen[q.Node]:
				seen[q.Node] = true
				queue = append(queue, q.Node)
			}
		}
	}
	return ends
}

func (a *auditor) laneStarved() {
	levels := slices.Sorted(maps.Keys(a.intent.levels()))
	for _, p := range a.external() {
		if p.Peer == nil || !a.info(p) || !p.IsUp() || p.Info.OperationalVLs < 2 {
			continue // one virtual lane has no tables
		}
		if p.VLArbitration == nil {
			a.unknown(place(p), "the VLArbitrationTables were not read")
			continue
		}
		turns := map[ib.VL]bool{}
		for _, t := range p.VLArbitration {
			for _, e := range t.Entries {
				if e.Weight > 0 {
					turns[e.VL] = true
				}
			}
		}
		if len(turns) == 0 {
			continue // never written: virtual lanes take turns
		}
		for in := range p.Node.Ports {
			t, read := p.SLToVL[ib.PortNum(in)]
			i := slices.IndexFunc(levels, func(sl ib.SL) bool { return t.VLs[sl] != ib.VLManagement && !turns[t.VLs[sl]] })
			if read && i >= 0 {
				a.found(place(p), "VL %d, which SL %d takes from port %d, has no weight", t.VLs[levels[i]], levels[i], in)
				break
			}
		}
	}
}
