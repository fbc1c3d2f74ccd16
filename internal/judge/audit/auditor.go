package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// auditor is an audit under way.
type auditor struct {
	f       *observed.Fabric
	intent  Intent
	options Options
	report  *Report

	check *check          // that is being made
	count int             // findings of it
	seen  map[string]bool // what it said to be unknown

	proof    *isolation.Proof                  // on first use
	walked   *walks                            // on first use
	judged   *routes.Result                    // on first use
	cabled   map[observed.Place]observed.Place // on first use
	managing map[ib.PortGUID]bool
	grants   map[grant]bool // true for full members
}

// found enters a finding of the check's own severity.
func (a *auditor) found(where, format string, args ...any) {
	a.enter(a.check.severity, where, fmt.Sprintf(format, args...), a.check.advice)
}

// unknown enters that something was not read, once for each place and thing.
func (a *auditor) unknown(where, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if key := where + "\x00" + what; !a.seen[key] {
		a.seen[key] = true
		a.enter(Unknown, where, what, adviceUnread)
	}
}

const adviceUnread = "find out why it does not answer, and read again; until then its state is unknown"

func (a *auditor) enter(s Severity, where, read, advice string) {
	c := &a.report.Counts
	*[...]*int{&c.Unknown, &c.Low, &c.Medium, &c.High, &c.Critical}[s]++
	if a.count++; a.count > MaxPerCheck {
		a.report.Omitted++
		return
	}
	a.report.Findings = append(a.report.Findings, Finding{a.check.name, a.check.number, s, where, read, advice})
}

// place names a port by what its node calls itself and by what cannot be
// mistaken: the port's GUID, or the node's and the number.
func place(p *observed.Port) string {
	if p.IsEnd() {
		return fmt.Sprintf("%s (port GUID %s)", p, p.GUID)
	}
	return fmt.Sprintf("%s (node GUID %s)", p, p.Node.GUID())
}

func nodePlace(n *observed.Node) string { return fmt.Sprintf("%s (node GUID %s)", n.Name(), n.GUID()) }

// info reports whether PortInfo of p was read; that it was not is entered.
func (a *auditor) info(p *observed.Port) bool {
	if !p.InfoRead {
		a.unknown(place(p), "PortInfo was not read")
	}
	return p.InfoRead
}

// switchInfo does the same for the switch of p.
func (a *auditor) switchInfo(n *observed.Node) bool {
	if !n.Switch.InfoRead {
		a.unknown(nodePlace(n), "SwitchInfo was not read")
	}
	return n.Switch.InfoRead
}

// entry is an element of a P_Key table that holds something.
type entry struct {
	index int
	key   ib.PKey
}

// entries lists what was read of p's table, zeros left out; what was not read
// is entered as unknown.
func (a *auditor) entries(p *observed.Port) []entry {
	if !p.IsEnd() && !a.switchInfo(p.Node) {
		return nil
	}
	if p.PKeyCap() > 0 && !p.PKeysKnown() || p.PKeyCap() == 0 && p.IsEnd() {
		a.unknown(place(p), "P_KeyTable was not read as a whole")
	}
	return readEntries(p)
}

func readEntries(p *observed.Port) []entry {
	var out []entry
	for i, k := range p.ReadPKeys() {
		if k != 0 {
			out = append(out, entry{i, k})
		}
	}
	return out
}

// keys lists the valid keys of p's table.
func (a *auditor) keys(p *observed.Port) []ib.PKey { return validKeys(a.entries(p)) }

func validKeys(entries []entry) []ib.PKey {
	var out []ib.PKey
	for _, e := range entries {
		if e.key.IsValid() {
			out = append(out, e.key)
		}
	}
	return out
}

// holds reports whether one of keys is of the partition.
func holds(keys []ib.PKey, base ib.PKeyBase) bool {
	return slices.ContainsFunc(keys, func(k ib.PKey) bool { return k.Base() == base })
}

// tenantKeys are keys of any partition but the default one.
func tenantKeys(keys []ib.PKey) []ib.PKey {
	return slices.DeleteFunc(slices.Clone(keys), func(k ib.PKey) bool { return k.Base() == ib.PKeyBaseDefault })
}

// hosts are the CA and router ports that were reached, ordered by GUID.
func (a *auditor) hosts() []*observed.Port {
	return slices.DeleteFunc(a.f.EndPorts(), func(p *observed.Port) bool { return p.Node.Switch != nil })
}

// external are the external ports of all switches.
func (a *auditor) external() []*observed.Port {
	var out []*observed.Port
	for _, n := range a.f.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			out = append(out, &n.Ports[i])
		}
	}
	return out
}

// leaves are the switch ports that face CAs and routers.
func (a *auditor) leaves() []*observed.Port {
	return slices.DeleteFunc(a.external(), func(p *observed.Port) bool { return !p.FacesEnd() })
}

// grant is a membership that a policy gives.
type grant struct {
	port ib.PortGUID
	base ib.PKeyBase
}

// allows reports what the policy gives a port of a partition.
func (a *auditor) allows(g ib.PortGUID, base ib.PKeyBase) (member, full bool) {
	if a.grants == nil {
		a.grants = map[grant]bool{}
		for _, p := range a.intent.Partitions {
			for _, g := range p.Limited {
				if _, known := a.grants[grant{g, p.Base}]; !known {
					a.grants[grant{g, p.Base}] = false
				}
			}
			for _, g := range p.Full {
				a.grants[grant{g, p.Base}] = true
			}
		}
	}
	full, member = a.grants[grant{g, base}]
	return member, full
}

// master is the LID that most end ports name as their master's, 0 when none
// does; of equals the lowest.
func master(f *observed.Fabric) ib.LID {
	votes := map[ib.LID]int{}
	for _, p := range f.EndPorts() {
		if p.InfoRead && p.Info.MasterSMLID != 0 {
			votes[p.Info.MasterSMLID]++
		}
	}
	var best ib.LID
	for _, lid := range slices.Sorted(maps.Keys(votes)) {
		if best == 0 || votes[lid] > votes[best] {
			best = lid
		}
	}
	return best
}

// managers are the ports that a subnet manager may be behind.
func (a *auditor) managers() map[ib.PortGUID]bool {
	if a.managing == nil {
		a.managing = map[ib.PortGUID]bool{}
		for _, g := range a.intent.Managers {
			a.managing[g] = true
		}
		if p := a.f.Manager(); len(a.intent.Managers) == 0 && p != nil {
			a.managing[p.GUID] = true
		}
	}
	return a.managing
}

// prove is the proof against the policy, made once.
func (a *auditor) prove() *isolation.Proof {
	if a.proof == nil {
		a.proof = isolation.Prove(a.f, a.intent.Partitions)
	}
	return a.proof
}

// cables maps each end of a cable that there may be to the other; nil when no
// list is known.
func (a *auditor) cables() map[observed.Place]observed.Place {
	if a.cabled != nil {
		return a.cabled
	}
	list := a.intent.Cables
	if list == nil && a.options.Earlier != nil {
		list = CablesOf(a.options.Earlier)
	}
	if list == nil {
		return nil
	}
	a.cabled = map[observed.Place]observed.Place{}
	for _, c := range list {
		a.cabled[c.A], a.cabled[c.B] = c.B, c.A
	}
	return a.cabled
}

// CablesOf lists the cables of a fabric.
func CablesOf(f *observed.Fabric) []Cable {
	out := []Cable{}
	for _, l := range f.Links() {
		out = append(out, Cable{endOf(l.A), endOf(l.B)})
	}
	return out
}

func endOf(p *observed.Port) observed.Place { return observed.Place{Node: p.Node.GUID(), Port: p.Num} }

// earlier is the same port in the earlier reading, nil when it was not there
// or its PortInfo was not read then, which is entered.
func (a *auditor) earlier(p *observed.Port) *observed.Port {
	n := a.options.Earlier.Node(p.Node.GUID())
	if n == nil {
		return nil
	}
	old := n.Port(p.Num)
	if old != nil && !old.InfoRead {
		a.unknown(place(p), "PortInfo was not read in the earlier reading")
		return nil
	}
	return old
}

// earlierKeys are the valid keys that a port of the earlier reading had.
func (a *auditor) earlierKeys(old *observed.Port) []ib.PKey {
	if old.PKeyCap() > 0 && !old.PKeysKnown() {
		a.unknown(place(old), "P_KeyTable was not read as a whole in the earlier reading")
	}
	return validKeys(readEntries(old))
}
