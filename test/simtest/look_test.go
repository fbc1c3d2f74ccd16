package simtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// end is an end port that the manager has to look after.
type end struct {
	place
	guid     ib.PortGUID
	name     string
	isSwitch bool
}

// ends are the management ports of switches and the CA and router ports with
// a link that is up, as the fabric is now.
func (w *world) ends() []end {
	var out []end
	for _, n := range w.list.Nodes {
		for num := range n.Ports {
			at := place{n.GUID, ib.PortNum(num)}
			if !n.IsEndPort(num) || n.Type != ib.NodeSwitch && w.info(at).PortState == smp.PortDown {
				continue
			}
			out = append(out, end{at, n.Ports[num].GUID, fmt.Sprintf("%s:%d", n.ID, num), n.Type == ib.NodeSwitch})
		}
	}
	return out
}

// checkUp holds the whole fabric against what bring-up promises.
func (w *world) checkUp(y tenancy) {
	t := w.t
	t.Helper()
	for _, c := range []struct {
		name  string
		check func()
	}{
		{"PI-38 PI-61 PI-83 links", w.checkLinks},
		{"PI-13 PI-51 PI-53 LF-05 addresses", w.checkAddresses},
		{"routes", w.checkRoutes},
		{"PI-12 PI-14 PI-111 PI-112 settings of end ports", w.checkSettings},
		{"PK-02 PK-19 PK-27 PK-34 PK-36 keys", func() { w.checkKeys(y) }},
		{"PI-87 PI-89 SW-03 SW-14 guards", w.checkGuards},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			c.check()
		})
	}
	w.t = t
}

// checkLinks: every link is Active at both ends and suits both.
func (w *world) checkLinks() {
	w.t.Helper()
	for _, n := range w.list.Nodes {
		for num := 1; num < len(n.Ports); num++ {
			at := place{n.GUID, ib.PortNum(num)}
			info := w.info(at)
			far, cabled := w.peer(at)
			if cabled && !w.listed(far.node) {
				continue
			}
			if !cabled {
				if info.PortState != smp.PortDown {
					w.t.Errorf("%s:%d has no cable and is %v", n.ID, num, info.PortState)
				}
				continue
			}
			other := w.info(far)
			if info.PortState != smp.PortActive {
				w.t.Errorf("%s:%d is %v, want Active", n.ID, num, info.PortState)
			}
			if want := min(info.MTUCap, other.MTUCap); info.NeighborMTU != want {
				w.t.Errorf("%s:%d NeighborMTU %v, want %v", n.ID, num, info.NeighborMTU, want)
			}
			if want := min(info.VLCap, other.VLCap); info.OperationalVLs != want {
				w.t.Errorf("%s:%d OperationalVLs %d, want %d", n.ID, num, info.OperationalVLs, want)
			}
		}
		if w.isEnhanced(n.GUID) {
			if info := w.info(place{n.GUID, 0}); info.PortState != smp.PortActive {
				w.t.Errorf("%s: enhanced port 0 is %v, want Active", n.ID, info.PortState)
			}
		}
	}
}

func (w *world) listed(g ib.NodeGUID) bool {
	return slices.ContainsFunc(w.list.Nodes, func(n *topology.Node) bool { return n.GUID == g })
}

func (w *world) isEnhanced(g ib.NodeGUID) bool {
	s := w.agent(g).SwitchInfo()
	return s != nil && s.EnhancedPort0
}

// lmcOf is the LMC that an end port is to have.
func (w *world) lmcOf(e end) ib.LMC {
	if e.isSwitch && !w.isEnhanced(e.node) {
		return 0
	}
	return w.manager.LMC
}

// checkAddresses: LIDs are unicast, aligned and nobody else's.
func (w *world) checkAddresses() {
	w.t.Helper()
	owner := map[ib.LID]string{}
	for _, e := range w.ends() {
		info := w.info(e.place)
		if info.LMC != w.lmcOf(e) {
			w.t.Errorf("%s: LMC %d, want %d", e.name, info.LMC, w.lmcOf(e))
		}
		if int(info.LID)%info.LMC.Count() != 0 {
			w.t.Errorf("%s: LID %d with LMC %d", e.name, info.LID, info.LMC)
		}
		for i := range info.LMC.Count() {
			lid := info.LID + ib.LID(i)
			if !lid.IsUnicast() {
				w.t.Errorf("%s: LID %d", e.name, lid)
			}
			if owner[lid] != "" {
				w.t.Errorf("%s: LID %d is also that of %s", e.name, lid, owner[lid])
			}
			owner[lid] = e.name
		}
	}
}

// lids maps every end port to its base LID.
func (w *world) lids() map[ib.PortGUID]ib.LID {
	out := map[ib.PortGUID]ib.LID{}
	for _, e := range w.ends() {
		out[e.guid] = w.info(e.place).LID
	}
	return out
}

// checkRoutes: packets from every end port reach every LID of every other, by
// the tables of the switches.
func (w *world) checkRoutes() {
	w.t.Helper()
	ends := w.ends()
	failed := 0
	for _, from := range ends {
		for _, to := range ends {
			info := w.info(to.place)
			for i := range info.LMC.Count() {
				if from == to || failed > 10 {
					continue
				}
				if way, ok := w.walk(from, to, info.LID+ib.LID(i)); !ok {
					failed++
					w.t.Errorf("from %s to %s, LID %d: %v", from.name, to.name, info.LID+ib.LID(i), way)
				}
			}
		}
	}
}

const maxHops = 64

// walk follows the forwarding tables and tells the way it took.
func (w *world) walk(from, to end, lid ib.LID) (way []place, ok bool) {
	at := from.place // where the packet is; it came in by this port
	if !from.isSwitch {
		if at, ok = w.peer(at); !ok {
			return nil, false
		}
	}
	for range maxHops {
		way = append(way, at)
		agent := w.agent(at.node)
		if agent.SwitchInfo() == nil {
			return way, at == to.place && agent.HasLID(at.num, lid)
		}
		exit, found := agent.UnicastExit(at.num, lid)
		if !found {
			return way, false
		}
		if exit == 0 {
			return way, at.node == to.node && to.num == 0 && agent.HasLID(0, lid)
		}
		leaving := place{at.node, exit}
		if w.info(leaving).PortState != smp.PortActive {
			return append(way, leaving), false
		}
		if at, ok = w.peer(leaving); !ok {
			return append(way, leaving), false
		}
	}
	return way, false
}

// subnetTimeOut is about a second: 4.096 us * 2^18.
const subnetTimeOut = 18

// checkSettings: every end port knows its subnet and its manager.
func (w *world) checkSettings() {
	w.t.Helper()
	prefix := w.manager.GIDPrefix
	if prefix == 0 {
		prefix = ib.DefaultGIDPrefix
	}
	manager := w.info(w.self).LID
	for _, e := range w.ends() {
		info := w.info(e.place)
		switch {
		case info.GIDPrefix != prefix:
			w.t.Errorf("%s: GidPrefix %#x, want %#x", e.name, info.GIDPrefix, prefix)
		case info.MasterSMLID != manager || info.MasterSMSL != 0:
			w.t.Errorf("%s: MasterSMLID %d SL %d, want %d and 0", e.name, info.MasterSMLID, info.MasterSMSL, manager)
		case info.SubnetTimeOut != subnetTimeOut:
			w.t.Errorf("%s: SubnetTimeOut %d, want %d", e.name, info.SubnetTimeOut, subnetTimeOut)
		case w.manager.Keys == nil && info.MKey != w.manager.MKey, w.manager.Keys != nil && info.MKey == 0:
			w.t.Errorf("%s: M_Key %v, want %v", e.name, info.MKey, w.manager.MKey)
		}
	}
}

// valid are the keys of a table, sorted.
func valid(table []ib.PKey) []ib.PKey {
	var out []ib.PKey
	for _, k := range table {
		if k.IsValid() {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func (w *world) table(p place) []ib.PKey { return w.agent(p.node).PKeys(p.num) }

func (w *world) selfGUID() ib.PortGUID {
	for _, e := range w.ends() {
		if e.place == w.self {
			return e.guid
		}
	}
	w.t.Fatal("the manager's own port has no link")
	return 0
}

// checkKeys: every end port holds the keys that the model gives it, once each,
// and the default key first, or where there is none any, if it has any.
func (w *world) checkKeys(y tenancy) {
	w.t.Helper()
	self := w.selfGUID()
	for _, e := range w.ends() {
		table, want := w.table(e.place), y.keys(e.guid, self)
		if got := valid(table); !slices.Equal(got, want) {
			w.t.Errorf("%s holds the keys %v, want %v", e.name, got, want)
		} else if y.none {
			if len(want) > 0 && !table[0].IsValid() {
				w.t.Errorf("%s holds %v at index 0, want a key", e.name, table[0])
			}
		} else if table[0].Base() != ib.PKeyBaseDefault {
			w.t.Errorf("%s holds %v at index 0, want a default key", e.name, table[0])
		}
	}
}

// guards tells what the switch port facing an end port can do: check packets
// that come in and packets that go out.
func (w *world) guards(e end, at place) (in, out bool) {
	s := w.agent(at.node).SwitchInfo()
	if s == nil || int(s.PartitionEnforcementCap) < len(valid(w.table(e.place))) {
		return false, false
	}
	return s.InboundEnforcementCap, s.OutboundEnforcementCap
}

// inUse reports whether a switch port is the management port, or has a link to
// a device that is looked after.
func (w *world) inUse(at place) bool {
	far, cabled := w.peer(at)
	return at.num == 0 || cabled && w.listed(far.node) && w.info(at).PortState != smp.PortDown
}

// checkGuards: switch ports that face an end port check what they can against
// the full key of each of its partitions, and no others check anything.
func (w *world) checkGuards() {
	w.t.Helper()
	facing := map[place]end{}
	for _, e := range w.ends() {
		if at, ok := w.peer(e.place); ok && !e.isSwitch {
			facing[at] = e
		}
	}
	for _, n := range w.list.Nodes {
		for num := range n.Ports {
			at := place{n.GUID, ib.PortNum(num)}
			e, faces := facing[at]
			if info := w.agent(n.GUID).Port(at.num); n.Type != ib.NodeSwitch && info != nil {
				if info.PartitionEnforcementInbound || info.PartitionEnforcementOutbound {
					w.t.Errorf("%s:%d is no switch port and checks", n.ID, num)
				}
			} else if info != nil && w.inUse(at) {
				in, out := false, false
				if faces {
					in, out = w.guards(e, at)
				}
				if info.PartitionEnforcementInbound != in || info.PartitionEnforcementOutbound != out {
					w.t.Errorf("%s:%d checks inbound %v, outbound %v, want %v, %v", n.ID, num,
						info.PartitionEnforcementInbound, info.PartitionEnforcementOutbound, in, out)
				}
				if in || out {
					w.checkGuardTable(e, at)
				}
			}
		}
	}
}

func (w *world) checkGuardTable(e end, at place) {
	w.t.Helper()
	want := []ib.PKey{}
	for _, k := range valid(w.table(e.place)) {
		want = append(want, k.Base().Full())
	}
	slices.Sort(want)
	if got := valid(w.table(at)); !slices.Equal(got, slices.Compact(want)) {
		w.t.Errorf("the switch port before %s holds %v, want %v", e.name, got, want)
	}
}

// allGuarded reports whether a switch holds every CA and router port to its
// partitions.
func (w *world) allGuarded() bool {
	for _, e := range w.ends() {
		if e.isSwitch {
			continue
		}
		at, ok := w.peer(e.place)
		if in, out := w.guards(e, at); !ok || !in || !out {
			return false
		}
	}
	return true
}

// trimmed is a table without the empty entries at its end.
func trimmed(table []ib.PKey) []ib.PKey {
	for len(table) > 0 && table[len(table)-1] == ib.PKeyInvalid {
		table = table[:len(table)-1]
	}
	return table
}

// isolating is all that keeps tenants apart: P_Key tables and enforcement.
func (w *world) isolating() string {
	var b strings.Builder
	for _, n := range w.list.Nodes {
		a := w.agent(n.GUID)
		for num := range n.Ports {
			if info := a.Port(ib.PortNum(num)); info != nil {
				fmt.Fprintf(&b, "%s:%d %v in %v out %v\n", n.ID, num, trimmed(a.PKeys(ib.PortNum(num))),
					info.PartitionEnforcementInbound, info.PartitionEnforcementOutbound)
			}
		}
	}
	return b.String()
}

// dump is everything that agents show: PortInfo, SwitchInfo and all tables, but
// for PortStateChange, which tells of the past.
func (w *world) dump() string {
	var b strings.Builder
	b.WriteString(w.isolating())
	top := ib.LID(0)
	for _, e := range w.ends() {
		info := w.info(e.place)
		top = max(top, info.LID+ib.LID(info.LMC.Count()))
	}
	for _, n := range w.list.Nodes {
		a := w.agent(n.GUID)
		for num := range n.Ports {
			port := ib.PortNum(num)
			info := a.Port(port)
			if info == nil {
				continue
			}
			bytes, err := info.AppendBinary(nil)
			if err != nil {
				w.t.Fatal(err)
			}
			high, low := a.VLArbitration(port)
			fmt.Fprintf(&b, "%s:%d %x %v %v", n.ID, num, bytes, high, low)
			for in := range n.Ports {
				for sl := range ib.SL(smp.SLCount) {
					fmt.Fprintf(&b, " %d", a.VL(ib.PortNum(in), port, sl))
				}
			}
			b.WriteByte('\n')
		}
		if s := a.SwitchInfo(); s != nil {
			info := *s
			info.PortStateChange = false
			fmt.Fprintf(&b, "%s %+v", n.ID, info)
			for lid := range top + 8 {
				exit, ok := a.UnicastExit(0, lid)
				fmt.Fprintf(&b, " %d/%v", exit, ok)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// firstDifference is the first line in which two dumps differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("\n  %.300s\n  %.300s", x[i], y[i])
		}
	}
	if len(x) != len(y) {
		return "one is longer"
	}
	return ""
}
