package scenario

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func operandArgs(t *testing.T, line string) *Operands {
	t.Helper()
	lines, err := testbed.Lines("x.ibs", []byte(line))
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	return &Operands{LineArgs: &testbed.LineArgs{Name: "x.ibs", Line: &lines[0], Words: lines[0].Words}, Topology: topology.Demo()}
}

func wants(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want one with %q", err, text)
	}
}

// TestPlaces: nodes and ports by name, the end port that packets reach, and the port that
// a modifier names.
func TestPlaces(t *testing.T) {
	a := operandArgs(t, "leaf-1 leaf-1:3 leaf-1:0 mgmt-1:1 mgmt-1")
	for _, want := range []struct {
		shown             string
		entry, own, exact ib.PortNum
	}{{"leaf-1", 0, 0, 0}, {"leaf-1:3", 0, 3, 3}, {"leaf-1:0", 0, 0, 0}, {"mgmt-1:1", 1, 0, 1}, {"mgmt-1", 1, 0, 1}} {
		p, err := a.Place()
		if err != nil {
			t.Fatal(err)
		}
		name, port, named := strings.Cut(want.shown, ":")
		if named {
			port = ":" + port
		}
		if n, err := a.Topology.Find(name); err != nil || p.Node != n || p.String() != n.ID+port || p.HasPort != named {
			t.Errorf("%s is %s, %v", want.shown, p, err)
		}
		if p.Entry() != want.entry || p.Own() != want.own || p.Exact().Port != want.exact || p.End().Port != want.entry || p.End().Node != p.Node.GUID {
			t.Errorf("%s: entry %d, own %d, exact %v, end %v", want.shown, p.Entry(), p.Own(), p.Exact(), p.End())
		}
	}
	for line, want := range map[string]string{
		"leaf-1:9": `x.ibs:1:1: port "9" of`, "mgmt-1:0": "want 1 to 1", "leaf-l": "want one of", "leaf-1:x": "want 0 to 8", "nobody:1": "want one of",
	} {
		_, err := operandArgs(t, line).Place()
		wants(t, err, want)
	}
	for line, want := range map[string]string{"leaf-1": "a port that can have a cable", "leaf-1:0": "a port that can have a cable"} {
		_, err := operandArgs(t, line).External()
		wants(t, err, want)
	}
	if p, err := operandArgs(t, "leaf-1:3").External(); err != nil || p.Num != 3 {
		t.Error(p, err)
	}
	b := operandArgs(t, "leaf-1:99 nobody:1 mgmt-1")
	for i, is := range []bool{true, false, true} {
		if b.IsNode(b.Words[i]) != is {
			t.Errorf("%s names a node: %t", b.Words[i].Text, !is)
		}
	}
}

// TestTargets: an attribute of a port with its modifier, in all the spellings.
func TestTargets(t *testing.T) {
	for line, want := range map[string]uint32{
		"mgmt-1 PortInfo": 0, "leaf-1:3 PortInfo": 3, "leaf-1:3 PKeyTable[1]": 3<<16 | 1, "mgmt-1 GUIDInfo[2]": 2,
		"leaf-1 SLToVLMappingTable[2,3]": 2<<8 | 3, "leaf-1 MulticastForwardingTable[4,1]": 1<<28 | 4,
		"leaf-1 PKeyTable[=0x70001]": 0x70001, "mgmt-1 0xFF00[5]": 5,
	} {
		got, err := operandArgs(t, line).Target()
		if err != nil || got.Modifier != want {
			t.Errorf("%s: %#x, %v; want %#x", line, got.Modifier, err, want)
		}
	}
	for line, want := range map[string]string{
		"mgmt-1 PKeyTable[1": "want a closing bracket", "mgmt-1 PKeyTable[1,2]": "want one number in brackets", "mgmt-1 Keys": "want an attribute",
		"mgmt-1": "the line ends", "mgmt-1 PKeyTable[65536]": "16 bits",
	} {
		_, err := operandArgs(t, line).Target()
		wants(t, err, want)
	}
}

// TestAssignments: entries by their number in the whole table select the block; those of
// two blocks do not go together; values have to fit.
func TestAssignments(t *testing.T) {
	read := func(line string) (OperandTarget, []Assignment, error) {
		a := operandArgs(t, line)
		target, err := a.Target()
		if err != nil {
			t.Fatal(err)
		}
		var out []Assignment
		for a.More() {
			x, err := a.Assignment(&target, true)
			if err != nil {
				return target, out, err
			}
			out = append(out, x)
		}
		return target, out, a.Fits(target, out)
	}
	target, fields, err := read("leaf-1:3 PKeyTable 33=0x8010 34!=0x8011")
	if err != nil || target.Modifier != 3<<16|1 || fields[0].Field != "1" || fields[1].Field != "2" || fields[1].Relation != "!=" {
		t.Errorf("%#x, %+v, %v", target.Modifier, fields, err)
	}
	for line, want := range map[string]string{
		"mgmt-1 PKeyTable 31=1 32=2": "want entries of one block in a line", "mgmt-1 PortInfo LID=65536": "a number of 16 bits",
		"mgmt-1 PortInfo PortState=flying": "one of active, armed", "mgmt-1 PortInfo NoSuch=1": "PortInfo: field",
		"mgmt-1 PortInfo LID=lid(nobody)": "want one of", "mgmt-1 PortInfo LID=lad(mgmt-1)": "want lid(NODE)",
		"mgmt-1 NodeDescription NodeString=0x0": "pairs of hexadecimal digits", "mgmt-1 PortInfo LMC=9": "a number of 3 bits",
	} {
		_, _, err := read(line)
		if line == "mgmt-1 PortInfo LMC=9" || strings.Contains(line, "NodeDescription") {
			if err == nil {
				t.Errorf("%s fits", line)
			}
			continue
		}
		wants(t, err, want)
	}
}

// TestData: values that are known only when the script runs are those of that moment.
func TestData(t *testing.T) {
	s, err := testbed.New(topology.Demo(), testbed.Config{Fabric: fabric.DefaultConfig(), Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	a := operandArgs(t, "MKey=mkey(mgmt-1) LID=lid(mgmt-1) SMKey=guess(mgmt-1)")
	var data []Datum
	for _, of := range []reflect.Type{reflect.TypeFor[ib.MKey](), reflect.TypeFor[ib.LID](), reflect.TypeFor[ib.SMKey]()} {
		w, err := a.Setting("x", false)
		if err != nil {
			t.Fatal(err)
		}
		d, err := a.ToDatum(w, of)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, d)
	}
	p, err := operandArgs(t, "mgmt-1").Place()
	if err != nil {
		t.Fatal(err)
	}
	other, err := operandArgs(t, "leaf-1").Place()
	if err == nil {
		err = s.SendFrom(other.End(), true)
	}
	if err == nil {
		err = s.BringUp(0)
	}
	if err != nil {
		t.Fatal(err)
	}
	var held smp.PortInfo
	s.Held(p.End(), 0, &held)
	held.MKey = 0xABC
	if r, err := s.Ask(testbed.Question{To: p.End(), Attribute: &held, Set: true}); err != nil || !r.Good() {
		t.Fatal(r, err)
	}
	info := s.Fabric.Agent(p.Node.GUID).Port(1)
	if data[0].Now(s) != 0xABC || data[1].Now(s) != uint64(info.LID) || info.LID == 0 {
		t.Errorf("M_Key %#x and LID %d, want those of the port, %v and %v", data[0].Now(s), data[1].Now(s), info.MKey, info.LID)
	}
	if first := data[2].Now(s); first == data[2].Now(s) {
		t.Error("a guess is the same twice")
	}
	var to smp.PortInfo
	f, err := AttributeField(reflect.ValueOf(&to).Elem(), "LID")
	if err != nil {
		t.Fatal(err)
	}
	Number(9).Store(s, f)
	for relation, holds := range map[string]bool{"=": true, ">=": true, "<=": true, "!=": false} {
		if Number(9).Compare(s, relation, f) != holds || to.LID != 9 {
			t.Errorf("LID %d %s 9: %t", to.LID, relation, !holds)
		}
	}
	if Number(10).Compare(s, ">=", f) || !Number(10).Compare(s, "<=", f) {
		t.Error("9 is at least 10")
	}
	if gid := p.GID(s); gid == (ib.GID{}) || gid.String() == "" {
		t.Errorf("the GID of mgmt-1 is %s", gid)
	}
}
