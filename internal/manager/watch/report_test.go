package watch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// site has two hosts at each of two switches that are cabled to each other, and who has which
// address there.
type site struct {
	*Directory
	leaf, spine        *observed.Node
	a, b, c, d         *observed.Port
	leafSelf, spineOwn *observed.Port
}

func newSite() *site {
	b := subnettest.New()
	x := &site{leaf: b.Switch(4, "leaf"), spine: b.Switch(4, "spine")}
	x.a, x.b = b.Host(x.leaf, "a"), b.Host(x.leaf, "b")
	subnettest.Join(x.leaf, x.spine) // port 3 of leaf, 1 of spine
	x.c, x.d = b.Host(x.spine, "c"), b.Host(x.spine, "d")
	x.leafSelf, x.spineOwn = &x.leaf.Ports[0], &x.spine.Ports[0]
	x.Directory = &Directory{Prefix: 0xfec0 << 48, Ends: b.Fabric.EndPorts(), Holder: func(l ib.LID) *observed.Port {
		for _, p := range b.Fabric.EndPorts() {
			if p.Info.LID == l {
				return p
			}
		}
		return nil
	}}
	slices.SortFunc(x.Ends, func(p, q *observed.Port) int { return cmp.Compare(p.GUID, q.GUID) })
	return x
}

func (x *site) gid(p *observed.Port) ib.GID { return ib.MakeGID(x.Prefix, p.GUID) }

// same compares a text with that of a file in testdata; IBWARDEN_UPDATE=1 writes it.
func same(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now, then := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range max(len(now), len(then)) {
		if i >= len(now) || i >= len(then) || now[i] != then[i] {
			t.Fatalf("%s:%d differs: got\n%s", path, i+1, strings.Join(now[min(i, len(now)):min(i+1, len(now))], ""))
		}
	}
}

// TestReports explains every kind of trap, from ports that are known and from others, and compares
// the sentence and what programs get with testdata/reports.txt: IBWARDEN_UPDATE=1 writes it, and
// the difference is to be read.
func TestReports(t *testing.T) {
	x := newSite()
	lid := func(p *observed.Port) ib.LID { return p.Info.LID }
	const nobody, group, prefix = ib.LID(0x77), ib.LID(0xC005), uint64(0xfe80) << 48
	foreign := ib.MakeGID(prefix, 0xdead)
	var text strings.Builder
	row := func(name string, from *observed.Port, number smp.TrapNumber, details smp.TrapDetails) {
		t.Helper()
		n, err := smp.NewTrap(number, smp.ProducerCA, lid(from), details)
		if err != nil {
			t.Fatal(err)
		}
		n.NoticeToggle, n.NoticeCount = number == smp.TrapBadQKey, uint16(number)/3
		report(t, &text, name, Explain(from, &n, x.Directory))
	}
	route := func(hops uint8, ports ...byte) *smp.BadMKeyDetails {
		d := &smp.BadMKeyDetails{LID: lid(x.d), DrSLID: ib.LIDPermissive, Method: mad.MethodGet, AttributeID: smp.AttrNodeInfo, DRNotice: true, DRHopCount: hops}
		copy(d.DRNoticeReturnPath[1:], ports)
		return d
	}
	m := &smp.BadMKeyDetails{LID: lid(x.b), Method: mad.MethodSet, AttributeID: smp.AttrPKeyTable, AttributeModifier: 0x10, MKey: 0x5ec3e7}
	row("M_Key, from a LID", x.a, smp.TrapBadMKey, m)
	row("M_Key, from a LID that nobody has", x.a, smp.TrapBadMKey, &smp.BadMKeyDetails{LID: nobody, Method: mad.MethodSet, AttributeID: 0xFF77})
	row("M_Key, from no LID", x.leafSelf, smp.TrapBadMKey, &smp.BadMKeyDetails{Method: mad.MethodSet, AttributeID: smp.AttrPortInfo})
	row("M_Key, routed from a switch to a host", x.a, smp.TrapBadMKey, route(2, 3, 1))
	row("M_Key, routed from a host to a host", x.a, smp.TrapBadMKey, route(3, 2, 3, 1))
	row("M_Key, routed from a host to a switch", x.leafSelf, smp.TrapBadMKey, route(1, 2))
	row("M_Key, routed over two switches", x.leafSelf, smp.TrapBadMKey, route(2, 3, 3))
	row("M_Key, routed to a port without a cable", x.leafSelf, smp.TrapBadMKey, route(1, 4))
	row("M_Key, routed through a port that is not there", x.leafSelf, smp.TrapBadMKey, route(1, 9))
	row("M_Key, of a path that was cut off", x.leafSelf, smp.TrapBadMKey, &smp.BadMKeyDetails{DRNotice: true, DRPathTruncated: true, DRHopCount: 1, Method: mad.MethodSet, AttributeID: smp.AttrPortInfo})
	row("M_Key, of more hops than a notice has", x.leafSelf, smp.TrapBadMKey, route(smp.NoticeReturnPathSize, 2))
	row("P_Key, of two that are known", x.a, smp.TrapBadPKey, &smp.BadKeyDetails{LID1: lid(x.b), LID2: lid(x.a), Key: 0x8010, SL: 3, QP1: 0x11, QP2: 0x22})
	row("P_Key, told by another", x.c, smp.TrapBadPKey, &smp.BadKeyDetails{LID1: nobody, LID2: lid(x.a), Key: 0x10, QP1: 1, QP2: 2, GID1: x.gid(x.b), GID2: x.gid(x.a)})
	row("Q_Key, to a group, from a GID that nobody has", x.a, smp.TrapBadQKey, &smp.BadKeyDetails{LID1: lid(x.b), LID2: group, Key: 0x80010000, SL: 1, GID1: foreign})
	row("Q_Key, from the GID of another, and by GID alone", x.a, smp.TrapBadQKey, &smp.BadKeyDetails{LID1: lid(x.b), Key: 7, GID1: ib.MakeGID(prefix, x.c.GUID), GID2: x.gid(x.d)})
	all := smp.SwitchBadPKeyDetails{DataValid: 0xFF, LID1: lid(x.b), LID2: lid(x.c), PKey: 0x8020, SL: 5, QP1: 3, QP2: 4, GID1: x.gid(x.b), GID2: x.gid(x.c), SwitchLID: lid(x.leafSelf), Port: 2}
	row("P_Key at a switch, nothing valid", x.leafSelf, smp.TrapSwitchBadPKey, &smp.SwitchBadPKeyDetails{LID1: lid(x.b), LID2: lid(x.c), PKey: 1, SL: 1, QP1: 3, GID1: x.gid(x.a), SwitchLID: lid(x.leafSelf), Port: 0})
	for bit := range 8 {
		one := all
		one.DataValid = 1 << bit
		row(fmt.Sprintf("P_Key at a switch, bit %d valid", bit), x.leafSelf, smp.TrapSwitchBadPKey, &one)
	}
	row("P_Key at a switch, all valid", x.leafSelf, smp.TrapSwitchBadPKey, &all)
	all.Port = 9
	row("P_Key at a switch, a port that it has not, told by another", x.a, smp.TrapSwitchBadPKey, &all)
	row("link state", x.leafSelf, smp.TrapLinkStateChanged, &smp.LinkStateDetails{LID: lid(x.leafSelf)})
	row("link state, told by a host", x.a, smp.TrapLinkStateChanged, &smp.LinkStateDetails{LID: lid(x.spineOwn)})
	row("link state of nobody", x.a, smp.TrapLinkStateChanged, &smp.LinkStateDetails{LID: nobody})
	for _, n := range []smp.TrapNumber{smp.TrapLinkIntegrity, smp.TrapBufferOverrun, smp.TrapFlowControlWatchdog} {
		row("port", x.leafSelf, n, &smp.PortDetails{LID: lid(x.leafSelf), Port: 3})
	}
	row("port of a host", x.a, smp.TrapLinkIntegrity, &smp.PortDetails{LID: lid(x.a), Port: 1})
	row("port without a cable, told by another", x.a, smp.TrapBufferOverrun, &smp.PortDetails{LID: lid(x.leafSelf), Port: 4})
	row("capabilities", x.a, smp.TrapLocalChange, &smp.LocalChangeDetails{LID: lid(x.a), CapabilityMask: 0x42, CapabilityMask2: 0x1, NodeDescriptionChange: true})
	row("every change", x.a, smp.TrapLocalChange, &smp.LocalChangeDetails{
		LID: lid(x.a), OtherLocalChanges: true, CapabilityMask: 0x40, CapabilityMask2: 0x3, CapabilityMask2Change: true, HierarchyInfoChange: true,
		SMPriorityChange: true, LinkSpeedEnabledChange: true, LinkWidthEnabledChange: true, NodeDescriptionChange: true,
	})
	for i, c := range []smp.LocalChangeDetails{{CapabilityMask2Change: true}, {HierarchyInfoChange: true}, {SMPriorityChange: true}, {LinkSpeedEnabledChange: true}, {LinkWidthEnabledChange: true}, {NodeDescriptionChange: true}} {
		c.OtherLocalChanges, c.LID = true, lid(x.a)
		row(fmt.Sprint("change ", i), x.b, smp.TrapLocalChange, &c)
	}
	row("GUID of a system", x.leafSelf, smp.TrapSystemImageGUID, &smp.SystemImageGUIDDetails{LID: lid(x.leafSelf), SystemImageGUID: 0xab})
	row("GUID of a system, told by another", x.a, smp.TrapSystemImageGUID, &smp.SystemImageGUIDDetails{LID: lid(x.b), SystemImageGUID: 0xab})
	for n := smp.TrapGIDInService; n <= smp.TrapMulticastGroupDeleted; n++ {
		row("GID of a host", x.a, n, &smp.GIDDetails{GID: x.gid(x.b)})
		row("GID of nobody", x.a, n, &smp.GIDDetails{GID: foreign})
	}
	row("GID of another subnet", x.a, smp.TrapGIDInService, &smp.GIDDetails{GID: ib.MakeGID(0xfed0<<48, x.b.GUID)})
	row("a path", x.a, smp.TrapUnpath, &smp.PathDetails{})
	vendor := smp.Notice{TrapNumber: smp.TrapBadMKey, Type: smp.NoticeUrgent, Producer: 0x2c9, IssuerLID: 9}
	report(t, &text, "a vendor's", Explain(&x.leaf.Ports[2], &vendor, x.Directory))
	x.b.Info.LID, x.c.InfoRead, x.d.Peer = 0, false, nil
	report(t, &text, "from a port without a LID", Explain(x.b, &vendor, x.Directory))
	report(t, &text, "from a port that was not read", Explain(x.c, &vendor, x.Directory))
	report(t, &text, "from a port without a cable", Explain(x.d, &vendor, x.Directory))
	same(t, "reports.txt", text.String())
}

// report prints a report: its sentence, and the members of its JSON that are not empty.
func report(t *testing.T, w *strings.Builder, name string, r *Report) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	data, _ = json.Marshal(full(members))
	fmt.Fprintf(w, "%s\n  %v\n  %s\n", name, r, data)
}

// full leaves out what is null or empty.
func full(of map[string]any) map[string]any {
	for k, v := range of {
		if m, is := v.(map[string]any); is {
			of[k] = full(m)
		}
		if list, is := v.([]any); v == nil || is && len(list) == 0 {
			delete(of, k)
		}
	}
	return of
}

// TestPriorityChange compares the trap that tells of a manager's priority with its bytes.
func TestPriorityChange(t *testing.T) {
	x := newSite()
	x.a.Info.CapabilityMask = 0x02500002
	m, err := PriorityChange(x.a, 5)
	if err != nil {
		t.Fatal(err)
	}
	var n smp.Notice
	if err := n.UnmarshalBinary(m.Data[:]); err != nil {
		t.Fatal(err)
	}
	want := smp.Notice{IsGeneric: true, Type: smp.NoticeInformational, Producer: smp.ProducerCA, TrapNumber: smp.TrapLocalChange, IssuerLID: x.a.Info.LID}
	details, _ := n.TypedDetails()
	d := details.(*smp.LocalChangeDetails)
	if n.Details = want.Details; n != want {
		t.Errorf("%v, want %v", n, want)
	}
	if want := (smp.LocalChangeDetails{LID: x.a.Info.LID, OtherLocalChanges: true, SMPriorityChange: true, CapabilityMask: 0x02500002}); *d != want {
		t.Errorf("%+v, want %+v", *d, want)
	}
	m.Data = [mad.DataSize]byte{}
	if want := (mad.SMP{BaseVersion: 1, Class: mad.ClassSubnLID, ClassVersion: 1, Method: mad.MethodTrap, TransactionID: 1<<31 | 5, AttributeID: smp.AttrNotice}); m != want {
		t.Errorf("%+v, want %+v", m, want)
	}
	x.a.Node.Info.NodeType = 0
	if m, err = PriorityChange(&observed.Port{Node: x.spine, Info: x.a.Info}, 6); err != nil || m.Data[3] != byte(smp.ProducerSwitch) || m.TransactionID != 1<<31|6 {
		t.Errorf("from a switch: producer %d, transaction %x, %v", m.Data[3], m.TransactionID, err)
	}
}

func TestIsOfManager(t *testing.T) {
	for _, x := range []struct {
		number  smp.TrapNumber
		details smp.TrapDetails
		want    bool
	}{
		{smp.TrapLocalChange, &smp.LocalChangeDetails{OtherLocalChanges: true, SMPriorityChange: true}, true},
		{smp.TrapLocalChange, &smp.LocalChangeDetails{SMPriorityChange: true}, false},
		{smp.TrapLocalChange, &smp.LocalChangeDetails{OtherLocalChanges: true, NodeDescriptionChange: true}, false},
		{smp.TrapLinkStateChanged, &smp.LinkStateDetails{LID: 1}, false},
	} {
		n, err := smp.NewTrap(x.number, smp.ProducerCA, 1, x.details)
		if err != nil || IsOfManager(&n) != x.want {
			t.Errorf("trap %d %+v: %v, %v", x.number, x.details, !x.want, err)
		}
		if n.IsGeneric = false; IsOfManager(&n) {
			t.Errorf("trap %d of a vendor is a manager's", x.number)
		}
	}
}

func TestRedirected(t *testing.T) {
	x := newSite()
	x.leafSelf.Key, x.leafSelf.Path = 0xabc, mad.Path{1, 7, 3}
	got := Redirected(mad.SMP{Class: mad.ClassSubnLID, Method: mad.MethodTrapRepress, TransactionID: 8, MKey: 1, HopPointer: 4}, x.leafSelf)
	want := mad.SMP{Class: mad.ClassSubnDirected, Method: mad.MethodTrapRepress, TransactionID: 8, MKey: 0xabc, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive, HopCount: 3}
	want.InitialPath = [64]byte{1: 1, 2: 7, 3: 3}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
