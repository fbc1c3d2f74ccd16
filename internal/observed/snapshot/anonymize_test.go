package snapshot

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// secrets are the values of a snapshot that may not be in an anonymized one: texts, and
// numbers of 8 bytes.
func secrets(s *Snapshot) (texts []string, numbers map[uint64]bool) {
	texts, numbers = []string{s.Source}, map[uint64]bool{}
	add := func(v ...uint64) {
		for _, v := range v {
			if v>>40 > 0 && v<<24 > 0 { // a number of few bytes stands in other fields by chance
				numbers[v] = true
			}
		}
	}
	nodeInfo := func(i *smp.NodeInfo) { add(uint64(i.NodeGUID), uint64(i.PortGUID), i.SystemImageGUID) }
	for _, n := range s.Fabric.Nodes {
		nodeInfo(&n.Info)
		if len(n.Description) > 4 {
			texts = append(texts, n.Description)
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			add(uint64(p.GUID), uint64(p.Info.MKey), uint64(p.Key), p.Info.GIDPrefix, uint64(p.SMInfo.GUID), uint64(p.SMInfo.SMKey))
			for _, t := range p.GUIDInfo {
				add(t.GUIDs[:]...)
			}
			for _, d := range p.VendorDiag {
				add(binary.BigEndian.Uint64(d.DiagData[:]))
			}
			if x := p.Stranger; x != nil {
				nodeInfo(&x.Info)
				texts = append(texts, x.Why.Error())
			}
		}
	}
	for _, f := range s.Faults {
		texts = append(texts, f.Where, f.Why)
	}
	return texts, numbers
}

// stringsOf are all texts in a document.
func stringsOf(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, x := range v {
			out = append(out, stringsOf(x)...)
		}
	case map[string]any:
		for _, x := range v {
			out = append(out, stringsOf(x)...)
		}
	}
	return out
}

// leaks lists what of the secrets of s is in a file.
func leaks(t *testing.T, s *Snapshot, file []byte) (out []string) {
	t.Helper()
	texts, numbers := secrets(s)
	for line := range bytes.Lines(file) {
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		for _, text := range stringsOf(v) {
			for _, x := range texts {
				if strings.Contains(text, x) {
					out = append(out, x)
				}
			}
			if g, err := ib.ParseNodeGUID(text); err == nil && numbers[uint64(g)] {
				out = append(out, text)
			}
			raw, err := base64.StdEncoding.DecodeString(text)
			for i := 0; err == nil && i+8 <= len(raw); i++ {
				if v := binary.BigEndian.Uint64(raw[i:]); numbers[v] {
					out = append(out, fmt.Sprintf("%016x", v))
				}
			}
		}
	}
	return out
}

// anonymized is s as an anonymized file has it.
func anonymized(t *testing.T, s *Snapshot, seed byte) (*Snapshot, []byte) {
	t.Helper()
	s.Conceal([32]byte{9, seed})
	var b bytes.Buffer
	if err := WriteAnonymized(&b, s, rand.NewPCG(7, uint64(seed)).Uint64); err != nil {
		t.Fatal(err)
	}
	file := bytes.Clone(b.Bytes())
	back, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return back, file
}

// An anonymized file is a snapshot of the same shape, has other names, GUIDs and P_Keys,
// equal where they were and in the same order, and nothing of what identified the site.
func TestAnonymize(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(1, seed))
		s := &Snapshot{Source: "site-7", Asked: []string{AskedQoS}, Fabric: randomFabric(r)}
		for i, n := range s.Fabric.Nodes {
			n.Description = fmt.Sprintf("customer%d HCA-%d", i/2, 1+i%2)
			s.Faults = append(s.Faults, Fault{n.Ports[1].String(), "PortInfo (modifier 0x00000001): no answer after 5 tries"}, Fault{"behind customer9", "secret words"})
		}
		plain := &Snapshot{Source: s.Source, Faults: slices.Clone(s.Faults[1:2]), Fabric: s.Fabric}
		before, err := Read(bytes.NewReader(written(t, s)))
		if err != nil {
			t.Fatal(err)
		}
		if len(leaks(t, before, written(t, plain))) == 0 {
			t.Fatalf("seed %d: the test sees nothing in a file that was not anonymized", seed)
		}
		after, file := anonymized(t, s, byte(seed))
		before.Faults = before.Faults[1:2]
		if out := leaks(t, before, file); len(out) > 0 {
			t.Fatalf("seed %d: the file has %q", seed, out)
		}
		sameShape(t, before.Fabric, after.Fabric)
		again, _ := anonymized(t, s, byte(seed)+1)
		if again.Fabric.Nodes[0].GUID() == after.Fabric.Nodes[0].GUID() {
			t.Fatalf("seed %d: another seed gave the same GUID", seed)
		}
		if f := after.Faults[0]; f.Where != after.Fabric.Nodes[0].Ports[1].String() || !strings.Contains(f.Why, "no answer after 5 tries") {
			t.Fatalf("seed %d: a failure reads %v", seed, f)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// sameShape holds the two fabrics against each other.
func sameShape(t *testing.T, x, y *observed.Fabric) {
	t.Helper()
	guids, words := pairing[uint64]{}, pairing[string]{}
	bases := pairing[uint64]{0: 0, uint64(ib.PKeyBaseDefault): uint64(ib.PKeyBaseDefault)}
	if x.Self.Node.Index != y.Self.Node.Index || x.Self.Num != y.Self.Num {
		t.Errorf("it was read from %v, not from %v", y.Self, x.Self)
	}
	for i, n := range x.Nodes {
		m := y.Nodes[i]
		guids.add(t, uint64(n.GUID()), uint64(m.GUID()))
		hostX, adapterX, _ := strings.Cut(n.Description, " ")
		hostY, adapterY, _ := strings.Cut(m.Description, " ")
		words.add(t, hostX, hostY)
		if n.Info.VendorID != m.Info.VendorID || n.Info.DeviceID != m.Info.DeviceID || n.GUID()>>40 != m.GUID()>>40 || adapterX != adapterY {
			t.Errorf("the device of %s became another", n.Name())
		}
		for j := range n.Ports {
			p, q := &n.Ports[j], &m.Ports[j]
			if (p.Peer == nil) != (q.Peer == nil) || p.Peer != nil && (p.Peer.Node.Index != q.Peer.Node.Index || p.Peer.Num != q.Peer.Num) {
				t.Errorf("the cable of %s leads elsewhere", p)
			}
			guids.add(t, uint64(p.GUID), uint64(q.GUID))
			guids.add(t, uint64(p.SMInfo.GUID), uint64(q.SMInfo.GUID))
			for block, g := range p.GUIDInfo {
				for k, v := range g.GUIDs {
					guids.add(t, v, q.GUIDInfo[block].GUIDs[k])
				}
			}
			if p.Info.LID != q.Info.LID || p.Info.PKeyViolations != q.Info.PKeyViolations || !slices.Equal(p.PKeysRead, q.PKeysRead) || len(p.PKeys) != len(q.PKeys) {
				t.Errorf("the settings of %s are others", p)
				continue
			}
			for k := range p.PKeys {
				bases.add(t, uint64(p.PKeys[k].Base()), uint64(q.PKeys[k].Base()))
				if p.PKeys[k].IsFull() != q.PKeys[k].IsFull() {
					t.Errorf("P_Key index %d of %s has another membership", k, p)
				}
			}
		}
		if n.Switch != nil && !slices.Equal(n.Switch.LFT, m.Switch.LFT) {
			t.Errorf("the forwarding table of %s is another", n.Name())
		}
	}
	for _, order := range []pairing[uint64]{guids, bases} {
		var was, is []uint64
		for v := range order {
			was = append(was, v)
		}
		slices.Sort(was)
		for _, v := range was {
			is = append(is, order[v])
			few := len(order) < 1<<14 // else there are not as many others
			if _, stood := order[order[v]]; stood && few && v != 0 && v != uint64(ib.PKeyBaseDefault) {
				t.Errorf("%x is in the place of %x, and was there before", order[v], v)
			}
		}
		if !slices.IsSorted(is) || len(slices.Compact(is)) != len(was) {
			t.Errorf("in the order of %x: %x", was, is)
		}
	}
}

// pairing has what stands for each value.
type pairing[T comparable] map[T]T

func (p pairing[T]) add(t *testing.T, was, is T) {
	t.Helper()
	if have, known := p[was]; known && have != is {
		t.Errorf("%v became %v and %v", was, have, is)
	}
	p[was] = is
}
