package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Remains says what of a site WriteAnonymized leaves in the file.
const Remains = "the size and shape of the fabric, which vendors' devices are where, their settings and counters, " +
	"LIDs and routes, the order of GUIDs and of P_Keys, and the time of the reading"

// WriteAnonymized writes s, whose keys are concealed, as Write does, with something else in
// place of every name, GUID and P_Key. It is made of what draw gives: numbers of 64 bits that
// nobody can foresee, and that are kept nowhere. What was equal stays equal, and GUIDs and
// P_Keys keep their order, by which much is chosen: verdicts of the file are those of s. GUIDs
// keep their first 3 bytes, which are the vendor's, and the default partition its number.
// VendorDiag data and bytes behind the end of an attribute are left out: they may hold anything.
func WriteAnonymized(w io.Writer, s *Snapshot, draw func() uint64) error {
	if !s.Concealed {
		return errors.New("snapshot: its keys are to be concealed first")
	}
	a := &anonymizer{draw: draw, words: map[string]string{}, guids: map[uint64]uint64{}, bases: map[uint64]uint64{}, prefixes: map[uint64]uint64{}}
	if err := a.collect(s.Fabric); err != nil {
		return err
	}
	h := *s
	h.Source, h.Faults = "anonymized", a.faults(s)
	return write(w, &h, a)
}

// siteLocal are the prefixes that any site may use.
const siteLocal uint64 = 0xFEC0_0000_0000_0000

// anonymizer has what stands for each value of a snapshot.
type anonymizer struct {
	draw         func() uint64
	words        map[string]string // names, and texts that are not known
	guids, bases map[uint64]uint64
	prefixes     map[uint64]uint64 // of the subnet
	collecting   bool              // the values are only noted
}

// collect finds all GUIDs and P_Keys and draws what stands for them.
func (a *anonymizer) collect(f *observed.Fabric) error {
	a.collecting = true
	for _, n := range f.Nodes {
		line, err := nodeOf(n)
		if err == nil {
			err = a.node(line)
		}
		if err != nil {
			return err
		}
	}
	a.collecting = false
	const vendorBits, allBases = 24, uint64(ib.PKeyBaseDefault) - 1
	guids, rest := slices.Sorted(maps.Keys(a.guids)), uint64(1)<<(64-vendorBits)
	for len(guids) > 0 {
		vendor := guids[0] / rest
		n := sort.Search(len(guids), func(i int) bool { return guids[i]/rest > vendor })
		a.exchange(a.guids, guids[:n], vendor*rest+1, rest-1)
		guids = guids[n:]
	}
	a.exchange(a.bases, slices.Sorted(maps.Keys(a.bases)), 1, allBases)
	return nil
}

// exchange draws for sorted values as many others from first on, of count, in the same order:
// none of the values, unless they are most of all that there are.
func (a *anonymizer) exchange(by map[uint64]uint64, values []uint64, first, count uint64) {
	taken := map[uint64]bool{}
	if 2*uint64(len(values)) <= count {
		for _, v := range values {
			taken[v] = true
		}
	}
	var drawn []uint64
	for len(drawn) < len(values) {
		if v := first + a.draw()%count; !taken[v] {
			taken[v] = true
			drawn = append(drawn, v)
		}
	}
	slices.Sort(drawn)
	for i, v := range values {
		by[v] = drawn[i]
	}
}

// guid stands for a GUID, 0 for 0.
func (a *anonymizer) guid(g uint64) uint64 {
	if a.collecting && g != 0 {
		a.guids[g] = g
	}
	return a.guids[g]
}

// key is a P_Key of another partition with the same membership; the default partition and
// keys of none stay.
func (a *anonymizer) key(k ib.PKey) ib.PKey {
	base := uint64(k.Base())
	if base == 0 || k.Base() == ib.PKeyBaseDefault {
		return k
	}
	if a.collecting {
		a.bases[base] = base
	}
	return k&^ib.PKey(ib.PKeyBaseDefault) | ib.PKey(a.bases[base])
}

// word stands for a text.
func (a *anonymizer) word(kind, text string) string {
	if a.words[text] == "" {
		const bits = 48
		a.words[text] = fmt.Sprintf("%s-%012x", kind, a.draw()>>(64-bits))
	}
	return a.words[text]
}

// adapter is how drivers name the adapters of a host in its description.
var adapter = regexp.MustCompile(`^(HCA-|mlx[45]_)[0-9]{1,3}$`)

// name stands for a description: its first word is another, and of the rest only the name of
// an adapter stays.
func (a *anonymizer) name(description string) string {
	if description == "" || a.collecting {
		return description
	}
	host, rest, _ := strings.Cut(description, " ")
	if rest != "" && !adapter.MatchString(rest) {
		rest = a.word("x", rest)
	}
	return strings.TrimSuffix(a.word("node", host)+" "+rest, " ")
}

// reason matches what a reading says of a failure and that comes from no device but for numbers.
var reason = regexp.MustCompile(`^([A-Za-z_]+( \(modifier 0x[0-9a-f]{8}\))?: )?(no answer|answered with status)[a-z0-9 (),:-]*$`)

func (a *anonymizer) why(text string) string {
	if a.collecting || reason.MatchString(text) {
		return text
	}
	return a.word("reason", text)
}

// faults are those of s at places with other names.
func (a *anonymizer) faults(s *Snapshot) []Fault {
	places := map[string]string{}
	if len(s.Faults) > 0 {
		for _, n := range s.Fabric.Nodes {
			other := &observed.Node{Info: n.Info, Description: a.name(n.Description), Switch: n.Switch, Ports: n.Ports}
			other.Info.NodeGUID = ib.NodeGUID(a.guid(uint64(n.GUID())))
			places[n.Name()] = other.Name()
			for i := range n.Ports {
				places[n.Ports[i].String()] = (&observed.Port{Node: other, Num: n.Ports[i].Num}).String()
			}
		}
	}
	out := []Fault{}
	for _, f := range s.Faults {
		where, known := places[f.Where]
		if !known {
			where = a.word("place", f.Where)
		}
		out = append(out, Fault{where, a.why(f.Why)})
	}
	return out
}

func (a *anonymizer) place(p *place) {
	if p != nil {
		p.Node = guid(a.guid(uint64(p.Node)))
	}
}

// node changes the line of a node.
func (a *anonymizer) node(n *node) (err error) {
	if n.Info, err = a.answer(smp.AttrNodeInfo, n.Info); err != nil {
		return err
	}
	n.Description = a.name(n.Description)
	for i := range n.Ports {
		p := &n.Ports[i]
		p.GUID = guid(a.guid(uint64(p.GUID)))
		a.place(p.Peer)
		if x := p.Stranger; x != nil {
			x.Why = a.why(x.Why)
			if x.Info, err = a.answer(smp.AttrNodeInfo, x.Info); err != nil {
				return err
			}
		}
	}
	for i := range n.Answers {
		x := &n.Answers[i]
		if x.Data, err = a.answer(kept[x.Attribute], x.Data); err != nil {
			return fmt.Errorf("snapshot: %s: %w", x.Attribute, err)
		}
	}
	return nil
}

// answer is the data of an attribute without what could identify.
func (a *anonymizer) answer(id mad.AttributeID, raw []byte) ([]byte, error) {
	d, _ := smp.Describe(id)
	raw = padded(bytes.Clone(raw))
	clear(raw[d.Size:])
	v := d.New()
	if err := v.UnmarshalBinary(raw); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *smp.NodeInfo:
		v.NodeGUID, v.PortGUID = ib.NodeGUID(a.guid(uint64(v.NodeGUID))), ib.PortGUID(a.guid(uint64(v.PortGUID)))
		v.SystemImageGUID = a.guid(v.SystemImageGUID)
	case *smp.PortInfo:
		if g, isGUID := a.guids[uint64(v.MKey)]; isGUID { // all other keys are concealed
			v.MKey = ib.MKey(g)
		}
		if v.GIDPrefix != 0 && v.GIDPrefix != ib.DefaultGIDPrefix {
			if a.prefixes[v.GIDPrefix] == 0 {
				a.prefixes[v.GIDPrefix] = siteLocal + uint64(len(a.prefixes)+1)
			}
			v.GIDPrefix = a.prefixes[v.GIDPrefix]
		}
	case *smp.SMInfo:
		v.GUID = ib.PortGUID(a.guid(uint64(v.GUID)))
	case *smp.GUIDInfo:
		for i := range v.GUIDs {
			v.GUIDs[i] = a.guid(v.GUIDs[i])
		}
	case *smp.PKeyTable:
		for i := range v.Keys {
			v.Keys[i] = a.key(v.Keys[i])
		}
	case *smp.VendorDiag:
		v.DiagData = [len(v.DiagData)]byte{}
	case *smp.SwitchInfo, *smp.LinearForwardingTable, *smp.RandomForwardingTable, *smp.MulticastForwardingTable,
		*smp.SLToVLMappingTable, *smp.VLArbitrationTable:
	default:
		return nil, errors.New("what of it identifies a site is not known")
	}
	var data [mad.DataSize]byte
	err := v.Encode(&data)
	return trimmed(data[:]), err
}
