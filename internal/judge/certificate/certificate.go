package certificate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Version is the version of the format, in its first line.
const Version = 1

// Validity is how long after the fabric was read a certificate expires.
const Validity = 7 * 24 * time.Hour

// Input is what a certificate is made of.
type Input struct {
	Fabric *observed.Fabric
	// Allowed are the partitions of the policy on this fabric; RawAllowed reports whether the
	// policy lets raw packets pass.
	Allowed    []observed.Partition
	RawAllowed bool
	// Cables says of a port whether the list of cables has what was found behind it; nil
	// where there is no list, and every cable is unlisted.
	Cables isolation.Cables
	// ReadAt is when reading the fabric began; the certificate expires Validity later.
	ReadAt time.Time
	// Revision is that of the service's policy; 0 for none.
	Revision uint64
	// Snapshot and Policy are the SHA-256 of the snapshot's file and of the policy as YAML;
	// nil where there is no such file.
	Snapshot, Policy []byte
	// View makes it the certificate of a tenant; nil for the whole fabric.
	View *View
}

// timeForm is how times are written: UTC, in seconds.
const timeForm = "2006-01-02T15:04:05Z"

// Write returns the certificate.
func Write(in Input) []byte {
	w := writer{in: in, grants: map[ib.PortGUID][]ib.PKey{}, ids: map[string]int{}, holders: map[ib.MKey]int{}}
	w.ports = in.Fabric.EndPorts()
	for _, p := range w.ports {
		w.holders[p.Info.MKey]++
	}
	for _, a := range in.Allowed {
		for _, g := range a.Limited {
			w.grants[g] = append(w.grants[g], a.Base.Limited())
		}
		for _, g := range a.Full {
			w.grants[g] = append(w.grants[g], a.Base.Full())
		}
	}
	if in.View != nil {
		w.blind()
	} else {
		w.collect()
	}
	return w.print()
}

// facts are what a certificate says, in any order.
type facts struct {
	partitions []string // lines
	switches   []switchFacts
	external   []portFacts
	ends       []endFacts
	cables     []string // lines
	unread     []string // lines
}

// Of the facts of ports, table and class are sets of keys as keySet writes them; a table may
// be noTable or notRead instead. What is empty does not tell.
type (
	switchFacts struct {
		guid                            string
		ports                           int
		entries, enforces, filters, key string // key: as guard writes it
		name                            string
	}
	portFacts struct{ at, state, enforce, filter, table string }
	endFacts  struct{ guid, at, kind, table, class, key, name string }
)

// In place of a set of keys, or of a value.
const (
	noTable = "none"
	notRead = "unread"
)

// writer is the work on one certificate.
type writer struct {
	in Input
	facts
	out     []byte
	ports   []*observed.Port // end ports
	grants  map[ib.PortGUID][]ib.PKey
	ids     map[string]int // the number of each set of keys
	holders map[ib.MKey]int
}

func (w *writer) line(format string, args ...any) {
	w.out = append(fmt.Appendf(w.out, format, args...), '\n')
}

// print writes the facts.
func (w *writer) print() []byte {
	in := &w.in
	w.line("ibwarden certificate %d", Version)
	w.line("made %s", in.ReadAt.UTC().Format(timeForm))
	w.line("expires %s", in.ReadAt.UTC().Add(Validity).Format(timeForm))
	w.line("revision %d", in.Revision)
	w.line("snapshot %s", digest(in.Snapshot))
	w.line("policy %s", digest(in.Policy))
	w.line("raw %s", map[bool]string{true: "allowed", false: "denied"}[in.RawAllowed])
	w.lines(w.partitions)
	w.sets()
	var lines []string
	for _, s := range w.switches {
		lines = append(lines, fmt.Sprintf("switch %s ports=%d entries=%s enforces=%s filters=%s %s name=%s", s.guid, s.ports, s.entries, s.enforces, s.filters, s.key, s.name))
	}
	w.lines(lines)
	lines = nil
	for _, p := range w.external {
		lines = append(lines, fmt.Sprintf("port %s state=%s enforce=%s filter=%s keys=%s", p.at, p.state, p.enforce, p.filter, w.id(p.table)))
	}
	w.lines(lines)
	lines = nil
	for _, e := range w.ends {
		node, num, _ := strings.Cut(e.at, " ")
		lines = append(lines, fmt.Sprintf("end %s node=%s port=%s type=%s keys=%s class=%s %s name=%s", e.guid, node, num, e.kind, w.id(e.table), w.id(e.class), e.key, e.name))
	}
	w.lines(lines)
	w.lines(w.cables)
	w.lines(w.unread)
	return fmt.Appendf(w.out, "sha256 %x\n", sha256.Sum256(w.out))
}

// lines writes lines of one kind.
func (w *writer) lines(list []string) {
	slices.Sort(list)
	for _, l := range list {
		w.out = append(append(w.out, l...), '\n')
	}
}

// sets numbers the sets of keys, and writes them and the classes.
func (w *writer) sets() {
	members := map[string]int{} // the number of end ports of each class
	for _, e := range w.ends {
		w.ids[e.table], w.ids[e.class] = 0, 0
		members[e.class]++
	}
	for _, p := range w.external {
		w.ids[p.table] = 0
	}
	delete(w.ids, noTable)
	delete(w.ids, notRead)
	list := slices.Sorted(maps.Keys(w.ids))
	for i, s := range list {
		w.ids[s] = i
		w.line("keys %d %s", i, s)
	}
	for i, s := range list {
		if n := members[s]; n > 0 {
			w.line("class %d ports=%d", i, n)
		}
	}
}

// id is how a line refers to a set.
func (w *writer) id(set string) string {
	if set == noTable || set == notRead {
		return set
	}
	return strconv.Itoa(w.ids[set])
}

func digest(sum []byte) string {
	if sum == nil {
		return "-"
	}
	return fmt.Sprintf("%x", sum)
}

// collect finds the facts.
func (w *writer) collect() {
	known := map[ib.PKeyBase]bool{}
	for _, a := range w.in.Allowed {
		if a.Base.IsValid() && !known[a.Base] {
			known[a.Base] = true
			w.partitions = append(w.partitions, partitionLine(a.Base, a.Name))
		}
	}
	for _, n := range w.in.Fabric.Switches() {
		s := w.switchOf(n)
		s.guid, s.ports, s.name = n.GUID().String(), len(n.Ports)-1, name(n.Description)
		w.switches = append(w.switches, s)
		for i := 1; i < len(n.Ports); i++ {
			p := portOf(&n.Ports[i])
			p.at = place(&n.Ports[i])
			w.external = append(w.external, p)
		}
	}
	for _, p := range w.ports {
		w.ends = append(w.ends, w.endOf(p))
	}
	for _, l := range w.in.Fabric.Links() {
		w.cables = append(w.cables, cableLine(place(l.A), place(l.B), w.listed(l.A, l.B)))
	}
	for _, n := range w.in.Fabric.Nodes {
		if n.Contested {
			w.unread = append(w.unread, contestedLine(n.GUID().String()))
		}
	}
}

func partitionLine(k ib.PKeyBase, called string) string {
	return fmt.Sprintf("partition %04x %s", uint16(k), name(called))
}

func cableLine(a, b, listed string) string {
	return fmt.Sprintf("cable %s %s %s", min(a, b), max(a, b), listed)
}

func contestedLine(guid string) string {
	return fmt.Sprintf("unread %s %s", guid, name("another device has the same GUID"))
}

// listed says whether the list of cables has a cable.
func (w *writer) listed(a, b *observed.Port) string {
	if w.in.Cables != nil && w.in.Cables(a) && w.in.Cables(b) {
		return "listed"
	}
	return "unlisted"
}

// place is where a port is.
func place(p *observed.Port) string { return fmt.Sprintf("%s %03d", p.Node.GUID(), p.Num) }

// keySet is how a set of keys is written: one key for each partition, the full one where the
// set has both, ascending by partition. The order of keys is changed.
func keySet(keys []ib.PKey) string {
	keys = slices.DeleteFunc(keys, func(k ib.PKey) bool { return !k.IsValid() })
	if len(keys) == 0 {
		return "-"
	}
	slices.SortFunc(keys, func(a, b ib.PKey) int { return cmp.Or(cmp.Compare(a.Base(), b.Base()), cmp.Compare(b, a)) })
	keys = slices.CompactFunc(keys, func(a, b ib.PKey) bool { return a.Base() == b.Base() })
	out := make([]byte, 0, 5*len(keys))
	for _, k := range keys {
		out = fmt.Appendf(out, " %04x", uint16(k))
	}
	return string(out[1:])
}

// isKnown reports whether the whole P_Key table of p was read. A port without one has none
// that is known.
func isKnown(p *observed.Port) bool {
	if !p.IsEnd() && (!p.Node.Switch.InfoRead || p.PKeyCap() == 0) {
		return false
	}
	cut := p.IsEnd() && int(p.Node.Info.PartitionCap) > observed.EndPKeysMax // the rest is not read
	return p.PKeyCap() > 0 && !cut && p.PKeysKnown() && len(p.PKeys) >= p.PKeyCap()
}

// table is the set of keys that a port's table holds.
func table(p *observed.Port) string {
	switch {
	case isKnown(p):
		return keySet(slices.Clone(p.PKeys))
	case !p.IsEnd() && p.Node.Switch.InfoRead && p.PKeyCap() == 0:
		return noTable
	}
	return notRead
}

// switchOf is what a switch can do, and how it is guarded.
func (w *writer) switchOf(n *observed.Node) switchFacts {
	i := &n.Switch.Info
	s := switchFacts{entries: notRead, enforces: notRead, filters: notRead, key: w.guard(&n.Ports[0])}
	if n.Switch.InfoRead {
		s.entries = fmt.Sprint(i.PartitionEnforcementCap)
		s.enforces = ways(i.InboundEnforcementCap, i.OutboundEnforcementCap)
		s.filters = ways(i.FilterRawInboundCap, i.FilterRawOutboundCap)
	}
	return s
}

// portOf is what is known of an external port of a switch.
func portOf(p *observed.Port) portFacts {
	f := portFacts{state: notRead, enforce: notRead, filter: notRead, table: table(p)}
	if p.InfoRead {
		f.state = fmt.Sprint(uint8(p.Info.PortState))
		f.enforce = ways(p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound)
		f.filter = ways(p.Info.FilterRawInbound, p.Info.FilterRawOutbound)
	}
	return f
}

// endOf is what is known of an end port.
func (w *writer) endOf(p *observed.Port) endFacts {
	kinds := map[ib.NodeType]string{ib.NodeSwitch: "switch", ib.NodeRouter: "router"}
	return endFacts{p.GUID.String(), place(p), cmp.Or(kinds[p.Node.Type()], "ca"), table(p), keySet(slices.Clone(w.grants[p.GUID])), w.guard(p), name(p.Node.Description)}
}

// ways says in which directions something is.
func ways(inbound, outbound bool) string {
	switch {
	case inbound && outbound:
		return "both"
	case inbound:
		return "in"
	case outbound:
		return "out"
	}
	return "no"
}

// guard is how the M_Key of an end port guards it.
func (w *writer) guard(p *observed.Port) string {
	i := &p.Info
	key := "own"
	switch {
	case !p.InfoRead:
		return "key=unread protect=unread lease=unread"
	case i.MKey == 0 && i.MKeyProtectBits != 0:
		key = "hidden"
	case i.MKey == 0:
		key = "none"
	case canBeGuessed(i.MKey, p):
		key = "weak"
	case w.holders[i.MKey] > 1:
		key = "shared"
	}
	return fmt.Sprintf("key=%s protect=%d lease=%d", key, i.MKeyProtectBits, i.MKeyLeasePeriod)
}

// A key is weak that is below guessable, has fewer different bytes than fewBytes, or is a GUID
// of its device.
const (
	guessable = 1 << 32
	fewBytes  = 4
)

func canBeGuessed(key ib.MKey, p *observed.Port) bool {
	distinct := map[byte]bool{}
	for i := range 8 {
		distinct[byte(key>>(8*i))] = true
	}
	return key < guessable || len(distinct) < fewBytes || uint64(key) == uint64(p.GUID) || uint64(key) == uint64(p.Node.GUID())
}

// name is text without spaces and line ends: what is not a visible ASCII character, and %,
// is written as % and two hexadecimal digits for each byte; no text is "-".
func name(s string) string {
	if s == "" {
		return "-"
	}
	var b bytes.Buffer
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '%' || c == '-' && len(s) == 1 {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
