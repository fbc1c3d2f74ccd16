package snapshot

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

// randomFabric is what devices with random answers leave, some of them doubted
// again and some recalled from an earlier pass.
func randomFabric(r *rand.Rand) *observed.Fabric {
	f := observed.NewFabric()
	for range 1 + r.IntN(6) {
		n := f.AddNode(smp.NodeInfo{
			NodeType: ib.NodeType(1 + r.IntN(3)), NumPorts: uint8(1 + r.IntN(5)), PartitionCap: uint16(r.IntN(100)),
			NodeGUID: ib.NodeGUID(r.Uint64()), PortGUID: ib.PortGUID(r.Uint64()), VendorID: uint32(r.IntN(1 << 24)),
		})
		n.Contested = r.IntN(4) == 0
		n.Description = []string{"", "a node", "<&>\" \ufffd\u2028", strings.Repeat("\ufffd", 64)}[r.IntN(4)]
		var path mad.Path
		for range r.IntN(4) {
			path = append(path, ib.PortNum(r.IntN(256)))
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			switch {
			case n.Switch != nil:
				p.Reached, p.Path = true, path
			case i > 0 && r.IntN(3) > 0:
				p.Reached, p.Path, p.GUID = true, path, ib.PortGUID(r.Uint64())
			}
			p.Silent = r.IntN(5) == 0
			if n.Switch != nil && i > 0 && r.IntN(9) == 0 {
				p.Stranger = &observed.Stranger{
					Info: smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: uint8(1 + r.IntN(254)), NodeGUID: ib.NodeGUID(r.Uint64())},
					Why:  errors.New("nobody declared it"), Undeclared: r.IntN(2) == 0,
				}
			}
			p.Forgets = observed.Element(r.IntN(1 << 16))
		}
		n.Ports[0].Silent = n.Ports[0].Silent && n.Switch != nil
		if n.Switch == nil {
			n.Ports[0].Forgets = 0
		}
		answerAtRandom(r, n)
	}
	for range 4 {
		a, b := somePort(r, f), somePort(r, f)
		if a != b && a.Peer == nil && b.Peer == nil {
			observed.Connect(a, b)
		}
	}
	f.Self = somePort(r, f)
	return f
}

func somePort(r *rand.Rand, f *observed.Fabric) *observed.Port {
	n := f.Nodes[r.IntN(len(f.Nodes))]
	return &n.Ports[1+r.IntN(len(n.Ports)-1)]
}

func answerAtRandom(r *rand.Rand, n *observed.Node) {
	var data [mad.DataSize]byte
	answer := func(p *observed.Port, id mad.AttributeID, modifier uint32) {
		for i := range data {
			data[i] = byte(r.Uint32() & r.Uint32()) // few bits, so that many fields stay small
		}
		if r.IntN(3) == 0 {
			clear(data[r.IntN(len(data)):])
		}
		if p.Absorb(id, modifier, data[:]) == nil && r.IntN(5) == 0 {
			p.MarkUnread(id, modifier)
		}
	}
	if n.Switch != nil {
		answer(&n.Ports[0], smp.AttrSwitchInfo, 0)
		n.Switch.Info.LinearFDBCap = uint16(r.IntN(500))
		n.Switch.Info.MulticastFDBCap = uint16(r.IntN(200))
	}
	for range 90 {
		p, num := &n.Ports[r.IntN(len(n.Ports))], ib.PortNum(r.IntN(len(n.Ports)))
		if n.Switch == nil {
			p = &n.Ports[1+r.IntN(len(n.Ports)-1)]
		}
		switch r.IntN(10) {
		case 0:
			answer(p, smp.AttrPortInfo, uint32(num))
		case 1:
			answer(p, smp.AttrPKeyTable, smp.PKeyModifier(num, uint16(r.IntN(5))))
		case 2:
			answer(p, smp.AttrSLToVLMappingTable, smp.SLToVLModifier(ib.PortNum(r.IntN(len(n.Ports))), num))
		case 3:
			answer(p, smp.AttrVLArbitrationTable, smp.VLArbModifier(smp.VLArbPart(1+r.IntN(4)), num))
		case 4:
			answer(p, smp.AttrLinearForwardingTable, uint32(r.IntN(8)))
		case 5:
			answer(p, smp.AttrRandomForwardingTable, uint32(r.IntN(8)))
		case 6:
			answer(p, smp.AttrMulticastForwardingTable, smp.MFTModifier(uint16(r.IntN(8)), 0))
		case 7:
			answer(p, smp.AttrSMInfo, 0)
		case 8:
			answer(p, smp.AttrGUIDInfo, uint32(r.IntN(4)))
		case 9:
			answer(p, smp.AttrVendorDiag, uint32(r.IntN(8)))
		}
	}
	earlier := &observed.Port{Node: n, PKeys: make([]ib.PKey, n.Ports[1].PKeyCap())}
	for i := range earlier.PKeys {
		earlier.PKeys[i] = ib.PKey(r.Uint32())
	}
	n.Ports[1].Recall(earlier)
}

func written(t *testing.T, s *Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What comes back is what was there, byte for byte and mark for mark.
func TestThereAndBack(t *testing.T) {
	for seed := range need.Share[uint64](75, 300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &Snapshot{
			ReadAt: time.Unix(int64(r.Uint32()), int64(r.Uint32()%1e9)).UTC(), Source: "sim:a b\"c",
			Asked: []string{AskedForwarding, AskedQoS}, Fabric: randomFabric(r),
			Faults: []Fault{{"sw1:3", "no answer"}},
		}
		file := written(t, s)
		back, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(s, back) {
			t.Fatalf("seed %d: it came back otherwise\n%s", seed, file)
		}
		if !bytes.Equal(written(t, back), file) {
			t.Fatalf("seed %d: written again it is another file", seed)
		}
	}
}

// Every field that a sweep fills is known to the file: whoever adds one to the
// snapshot in memory adds it to answersOf or nodeOf, and here. Via, Leads, Key and RefusesExtendedSpeeds
// say how to ask a device again, which nobody does from a file: a key least of all; sharesLFT,
// how memory is kept.
func TestNothingIsForgotten(t *testing.T) {
	for _, x := range []struct {
		of    any
		known string
	}{
		{observed.Fabric{}, "Nodes Self byNode journal"},
		{observed.Node{}, "Index Info Description Switch Ports Contested fabric"},
		{observed.Port{}, "Via Leads Key Offered RefusesExtendedSpeeds Node Num GUID Path Reached Info InfoRead Peer Silent Stranger PKeys PKeysRead VLArbitration SLToVL SMInfo SMInfoRead GUIDInfo VendorDiag Forgets"},
		{observed.Switch{}, "Info InfoRead LFT LFTRead sharesLFT RFT RFTRead MFT"},
	} {
		known := strings.Fields(x.known)
		for _, f := range reflect.VisibleFields(reflect.TypeOf(x.of)) {
			found := false
			for _, k := range known {
				found = found || k == f.Name
			}
			if !found {
				t.Errorf("%T.%s is not kept in the file", x.of, f.Name)
			}
		}
	}
}

func small() *Snapshot {
	r := rand.New(rand.NewPCG(7, 7))
	return &Snapshot{ReadAt: time.Unix(1e9, 0).UTC(), Source: "sim", Asked: []string{}, Faults: []Fault{}, Fabric: randomFabric(r)}
}

// A file that was cut short anywhere is refused.
func TestCutShort(t *testing.T) {
	file := written(t, small())
	lines := bytes.Count(file, []byte("\n"))
	for _, n := range append(rand.New(rand.NewPCG(1, 1)).Perm(len(file))[:200], 0, len(file)-1) {
		_, err := Read(bytes.NewReader(file[:n]))
		if err == nil || !strings.Contains(err.Error(), "cut short") || !strings.Contains(err.Error(), "line ") {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(file), err)
		}
	}
	whole := bytes.SplitAfter(file, []byte("\n"))
	for gone := range lines {
		var rest []byte
		for i, l := range whole {
			if i != gone {
				rest = append(rest, l...)
			}
		}
		if _, err := Read(bytes.NewReader(rest)); err == nil {
			t.Errorf("line %d of %d can be left out", gone+1, lines)
		}
	}
}

// A file of which one byte was changed is refused.
func TestChanged(t *testing.T) {
	file := written(t, small())
	for _, n := range rand.New(rand.NewPCG(2, 1)).Perm(len(file))[:500] {
		edited := bytes.Clone(file)
		edited[n] ^= 1
		if _, err := Read(bytes.NewReader(edited)); err == nil {
			t.Fatalf("byte %d can be changed from %q to %q", n, file[n], edited[n])
		}
	}
}

// summed puts right the sums of lines that a test wrote.
func summed(t *testing.T, lines ...string) []byte {
	t.Helper()
	var sum chain
	var out []byte
	for _, l := range lines {
		out = append(out, l[:len(l)-1]...)
		out = append(out, sumField...)
		out = append(out, sum.add([]byte(l))...)
		out = append(out, "\"}\n"...)
	}
	return out
}

// Files whose sums are right and that nevertheless make no sense.
func TestRefused(t *testing.T) {
	const (
		ca  = `{"node":{"info":"AQEBAQAAAAAAAAAAAAAAAAAAAAUAAAAAAAAABgAg","ports":[%],"answers":[]}}`
		end = `{"end":{"nodes":1}}`
	)
	head := func(s string) string { return strings.Replace(`{"ibwarden_snapshot":1,"nodes":1%}`, "%", s, 1) }
	with := func(s string) string { return strings.Replace(ca, "%", s, 1) }
	answer := func(s string) string { return strings.Replace(with(""), `"answers":[]`, `"answers":[`+s+`]`, 1) }
	good := [][]byte{summed(t, head(""), with(""), end)}
	for _, file := range good {
		if _, err := Read(bytes.NewReader(file)); err != nil {
			t.Fatalf("%v\n%s", err, file)
		}
	}
	for name, x := range map[string]struct {
		file []byte
		want string
	}{
		"nothing":          {nil, "line 1: the file ends here"},
		"text":             {[]byte("hello\n"), "no snapshot of ibwarden"},
		"other JSON":       {summed(t, `{"version":1}`), "no snapshot of ibwarden"},
		"a later version":  {summed(t, `{"ibwarden_snapshot":2}`), "version 2, want 1"},
		"a field too many": {summed(t, head(`,"x":1`), with(""), end), `"x"`},
		"too many nodes":   {summed(t, `{"ibwarden_snapshot":1,"nodes":99999}`), "99999 nodes"},
		"a node twice":     {summed(t, `{"ibwarden_snapshot":1,"nodes":2}`, with(""), with("")), "line 3: 0x0000000000000005 was there before"},
		"no such self":     {summed(t, head(`,"self":{"node":"0x5","port":2}`), with(""), end), "line 1: self is port 2"},
		"no such port":     {summed(t, head(""), with(`{"port":2}`), end), "line 2: 0x0000000000000005: port 2"},
		"half a cable":     {summed(t, head(""), with(`{"port":1,"peer":{"node":"0x9","port":1}}`), end), "line 2"},
		"a long route":     {summed(t, head(""), with(`{"port":1,"route":[1`+strings.Repeat(",1", 64)+`]}`), end), "at most"},
		"forgets":          {summed(t, head(""), with(`{"port":1,"forgets":["frob"]}`), end), "frob"},
		"an answer":        {summed(t, head(""), answer(`{"port":1,"attribute":"Notice","modifiers":[0],"data":""}`), end), `"Notice"`},
		"a key too many":   {summed(t, head(""), answer(`{"port":1,"attribute":"PKeyTable","modifiers":[1],"data":""}`), end), "block 1"},
		"a long answer":    {summed(t, head(""), answer(`{"port":1,"attribute":"PKeyTable","modifiers":[0],"data":"`+strings.Repeat("AAAA", 30)+`"}`), end), "90 bytes"},
		"a wrong end":      {summed(t, head(""), with(""), `{"end":{"nodes":2}}`), "the end counts 2 nodes"},
		"more":             {append(summed(t, head(""), with(""), end), '\n'), "line 4: something follows"},
	} {
		_, err := Read(bytes.NewReader(x.file))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// A device that changes the size of its table between two answers is no reason
// to fall over.
func TestTableThatGrows(t *testing.T) {
	f := observed.NewFabric()
	n := f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 1, NodeGUID: 1})
	var data [mad.DataSize]byte
	for _, size := range []uint16{32, 128, 8} {
		n.Switch.Info.PartitionEnforcementCap = size
		block := (size - 1) / 32
		if err := n.Ports[0].Absorb(smp.AttrPKeyTable, smp.PKeyModifier(1, block), data[:]); err != nil {
			t.Error(err)
		}
		if p := &n.Ports[1]; len(p.PKeys) != int(size) || !p.PKeysRead[block] {
			t.Errorf("%d entries, %v; want %d", len(p.PKeys), p.PKeysRead, size)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(&b, small()); err != nil {
		f.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines[:len(lines)-1] {
		lines[i] = l[:len(l)-sumTail] + "}"
	}
	f.Add(strings.Join(lines[:len(lines)-1], "\n"))
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		for _, l := range lines {
			if l == "" {
				return
			}
		}
		s, err := Read(bytes.NewReader(summed(t, lines...)))
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := Write(&b, s); err != nil {
			return // two ports of one switch with routes of their own
		}
		if _, err := Read(&b); err != nil {
			t.Fatal(err)
		}
	})
}

// TestClone: a copy is written as the snapshot is, in spite of all that is changed in the
// snapshot afterwards, and has no memory in common with it that is written to.
func TestClone(t *testing.T) {
	for seed := range need.Share[uint64](25, 100) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := &Snapshot{ReadAt: time.Unix(1e9, 0).UTC(), Source: "sim", Asked: []string{}, Faults: []Fault{}, Fabric: randomFabric(r)}
		f := s.Fabric
		f.Nodes[0].Ports[1].Via, f.Nodes[0].Ports[1].Key, f.Nodes[0].Ports[1].Leads = somePort(r, f), 7, true
		file := written(t, s)
		c := *s
		c.Fabric = f.Clone()
		if !bytes.Equal(written(t, &c), file) {
			t.Fatalf("seed %d: a copy is written as another file", seed)
		}
		if p, q := &f.Nodes[0].Ports[1], &c.Fabric.Nodes[0].Ports[1]; q.Key != 7 || !q.Leads || q.Via == p.Via || q.Via.Num != p.Via.Num || q.Via.Node != c.Fabric.Nodes[p.Via.Node.Index] {
			t.Fatalf("seed %d: how a device is asked again is not in the copy", seed)
		}
		if c.Fabric.Node(f.Nodes[0].GUID()) != c.Fabric.Nodes[0] {
			t.Fatalf("seed %d: a node is not found by its GUID", seed)
		}
		if at := inCommon(reflect.ValueOf(f), reflect.ValueOf(c.Fabric)); at != "" {
			t.Fatalf("seed %d: %s is in both", seed, at)
		}
		for _, n := range f.Nodes {
			n.Description += "!"
			for i := range n.Ports {
				p := &n.Ports[i]
				p.Info.LID++
				clear(p.PKeys)
				clear(p.SLToVL)
			}
			if n.Switch != nil {
				clear(n.Switch.LFT)
				clear(n.Switch.MFT)
			}
		}
		if !bytes.Equal(written(t, &c), file) {
			t.Fatalf("seed %d: a copy changed with the snapshot", seed)
		}
	}
}

// inCommon names memory that two values both reach; "" for none. What an error or a string is
// made of does not count.
func inCommon(a, b reflect.Value) string {
	seen, err := map[uintptr]string{}, reflect.TypeFor[error]()
	var walk func(v reflect.Value, at string, found func(p uintptr, at string) bool)
	walk = func(v reflect.Value, at string, found func(uintptr, string) bool) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() && found(v.Pointer(), at) {
				walk(v.Elem(), at, found)
			}
		case reflect.Slice:
			if v.Len() > 0 && found(v.Pointer(), at) || v.Len() > 0 && v.Type().Elem().Kind() == reflect.Struct {
				for i := range v.Len() {
					walk(v.Index(i), at+"[]", found)
				}
			}
		case reflect.Map:
			if v.Len() > 0 && found(v.Pointer(), at) {
				for _, k := range v.MapKeys() {
					walk(v.MapIndex(k), at+"[]", found)
				}
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), at+"."+v.Type().Field(i).Name, found)
			}
		case reflect.Interface:
			if !v.IsNil() && v.Type() != err {
				walk(v.Elem(), at, found)
			}
		}
	}
	walk(a, "", func(p uintptr, at string) bool {
		_, was := seen[p]
		seen[p] = at
		return !was
	})
	common, again := "", map[uintptr]bool{}
	walk(b, "", func(p uintptr, at string) bool {
		if seen[p] != "" && common == "" {
			common = at
		}
		was := again[p]
		again[p] = true
		return !was
	})
	return common
}
