package certificate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
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
}

// timeForm is how times are written: UTC, in seconds.
const timeForm = "2006-01-02T15:04:05Z"

// Write returns the certificate.
func Write(in Input) []byte {
	w := writer{
		in: in, grants: map[ib.PortGUID][]ib.PKey{}, classes: map[*observed.Port]string{}, tables: map[*observed.Port]string{},
		ids: map[string]int{}, members: map[int]int{}, holders: map[ib.MKey]int{},
	}
	w.collect()
	w.line("ibwarden certificate %d", Version)
	w.line("made %s", in.ReadAt.UTC().Format(timeForm))
	w.line("expires %s", in.ReadAt.UTC().Add(Validity).Format(timeForm))
	w.line("revision %d", in.Revision)
	w.line("snapshot %s", digest(in.Snapshot))
	w.line("policy %s", digest(in.Policy))
	w.line("raw %s", map[bool]string{true: "allowed", false: "denied"}[in.RawAllowed])
	w.partitions()
	for i, s := range w.sets {
		w.line("keys %d %s", i, s)
	}
	for i := range w.sets {
		if n := w.members[i]; n > 0 {
			w.line("class %d ports=%d", i, n)
		}
	}
	w.switches()
	w.ends()
	w.cables()
	w.unread()
	return fmt.Appendf(w.out, "sha256 %x\n", sha256.Sum256(w.out))
}

func digest(sum []byte) string {
	if sum == nil {
		return "-"
	}
	return fmt.Sprintf("%x", sum)
}

// writer is the work on one certificate.
type writer struct {
	in     Input
	out    []byte
	ports  []*observed.Port // end ports
	grants map[ib.PortGUID][]ib.PKey
	// classes and tables are the sets of keys of ports, as they are written: what the policy
	// gives, and what the table holds, where all of it was read.
	classes, tables map[*observed.Port]string
	sets            []string       // sets of keys as they are written, sorted
	ids             map[string]int // the place of each in sets
	members         map[int]int    // the number of end ports of each class
	holders         map[ib.MKey]int
}

func (w *writer) line(format string, args ...any) {
	w.out = append(fmt.Appendf(w.out, format, args...), '\n')
}

// collect finds the sets of keys, and numbers them.
func (w *writer) collect() {
	w.ports = w.in.Fabric.EndPorts()
	slices.SortStableFunc(w.ports, func(a, b *observed.Port) int {
		return cmp.Or(cmp.Compare(a.GUID, b.GUID), comparePlaces(a, b))
	})
	for _, a := range w.in.Allowed {
		for _, g := range a.Limited {
			w.grants[g] = append(w.grants[g], a.Base.Limited())
		}
		for _, g := range a.Full {
			w.grants[g] = append(w.grants[g], a.Base.Full())
		}
	}
	add := func(keys []ib.PKey) string {
		s := keySet(keys)
		w.ids[s] = 0
		return s
	}
	var keys []ib.PKey
	read := func(p *observed.Port) {
		if isKnown(p) {
			keys = keys[:0]
			for _, k := range p.PKeys { // all of which was read
				if k != 0 {
					keys = append(keys, k)
				}
			}
			w.tables[p] = add(keys)
		}
	}
	for _, p := range w.ports {
		w.classes[p] = add(w.grants[p.GUID])
		w.holders[p.Info.MKey]++
		read(p)
	}
	for _, n := range w.in.Fabric.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			read(&n.Ports[i])
		}
	}
	for s := range w.ids {
		w.sets = append(w.sets, s)
	}
	slices.Sort(w.sets)
	for i, s := range w.sets {
		w.ids[s] = i
	}
	for _, p := range w.ports {
		w.members[w.ids[w.classes[p]]]++
	}
}

func comparePlaces(a, b *observed.Port) int {
	return cmp.Or(cmp.Compare(a.Node.GUID(), b.Node.GUID()), cmp.Compare(a.Num, b.Num))
}

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

// table is the set of keys that a port's table holds, by number.
func (w *writer) table(p *observed.Port) string {
	set, known := w.tables[p]
	switch {
	case known:
		return strconv.Itoa(w.ids[set])
	case !p.IsEnd() && p.Node.Switch.InfoRead && p.PKeyCap() == 0:
		return "none"
	}
	return "unread"
}

func (w *writer) partitions() {
	list := slices.DeleteFunc(slices.Clone(w.in.Allowed), func(a observed.Partition) bool { return !a.Base.IsValid() })
	slices.SortStableFunc(list, func(a, b observed.Partition) int { return cmp.Compare(a.Base, b.Base) })
	list = slices.CompactFunc(list, func(a, b observed.Partition) bool { return a.Base == b.Base })
	for _, a := range list {
		w.line("partition %04x %s", uint16(a.Base), name(a.Name))
	}
}

func (w *writer) switches() {
	list := w.in.Fabric.Switches()
	slices.SortFunc(list, func(a, b *observed.Node) int { return cmp.Compare(a.GUID(), b.GUID()) })
	for _, n := range list {
		i := &n.Switch.Info
		entries, enforces, filters := "unread", "unread", "unread"
		if n.Switch.InfoRead {
			entries = fmt.Sprint(i.PartitionEnforcementCap)
			enforces = ways(i.InboundEnforcementCap, i.OutboundEnforcementCap)
			filters = ways(i.FilterRawInboundCap, i.FilterRawOutboundCap)
		}
		w.line("switch %s ports=%d entries=%s enforces=%s filters=%s %s name=%s", n.GUID(), len(n.Ports)-1, entries, enforces, filters, w.guard(&n.Ports[0]), name(n.Description))
	}
	for _, n := range list {
		for i := 1; i < len(n.Ports); i++ {
			p := &n.Ports[i]
			state, enforce, filter := "unread", "unread", "unread"
			if p.InfoRead {
				state = fmt.Sprint(uint8(p.Info.PortState))
				enforce = ways(p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound)
				filter = ways(p.Info.FilterRawInbound, p.Info.FilterRawOutbound)
			}
			w.line("port %s %03d state=%s enforce=%s filter=%s keys=%s", n.GUID(), i, state, enforce, filter, w.table(p))
		}
	}
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

func (w *writer) ends() {
	kinds := map[ib.NodeType]string{ib.NodeSwitch: "switch", ib.NodeRouter: "router"}
	for _, p := range w.ports {
		w.line("end %s node=%s port=%03d type=%s keys=%s class=%d %s name=%s", p.GUID, p.Node.GUID(), p.Num,
			cmp.Or(kinds[p.Node.Type()], "ca"), w.table(p), w.ids[w.classes[p]], w.guard(p), name(p.Node.Description))
	}
}

func (w *writer) cables() {
	for _, l := range w.in.Fabric.Links() {
		listed := "unlisted"
		if w.in.Cables != nil && w.in.Cables(l.A) && w.in.Cables(l.B) {
			listed = "listed"
		}
		w.line("cable %s %03d %s %03d %s", l.A.Node.GUID(), l.A.Num, l.B.Node.GUID(), l.B.Num, listed)
	}
}

// unread are the devices of which no other line says that something is not known.
func (w *writer) unread() {
	var lines []string
	for _, n := range w.in.Fabric.Nodes {
		if n.Contested {
			lines = append(lines, fmt.Sprintf("unread %s %s", n.GUID(), name("another device has the same GUID")))
		}
	}
	slices.Sort(lines)
	for _, l := range lines {
		w.line("%s", l)
	}
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
