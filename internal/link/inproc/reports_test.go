package inproc_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// device sends traps of its own making from a port of the fabric.
type device struct {
	place *fabric.Attachment
	lid   ib.LID
}

func (d *device) trap(t *testing.T, to ib.LID, n smp.Notice) {
	t.Helper()
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion,
		Method: mad.MethodTrap, AttributeID: smp.AttrNotice, TransactionID: uint64(n.TrapNumber),
	}
	data, err := n.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(p.Data[:], data)
	var bytes [mad.Size]byte
	if err := p.Encode(&bytes); err != nil {
		t.Fatal(err)
	}
	d.place.Send(&bytes, to)
}

func deviceAt(t *testing.T, f *fabric.Fabric, node ib.NodeGUID, num ib.PortNum) *device {
	t.Helper()
	a, err := f.Attach(node, num)
	if err != nil {
		t.Fatal(err)
	}
	return &device{a, f.Agent(node).Port(num).LID}
}

// reportsDuring runs the manager for some time, answers what reports come to the
// hosts, and returns the numbers of their traps.
func (m *manager) reportsDuring(d time.Duration, act func(), hosts ...*host) [][]smp.TrapNumber {
	m.Helper()
	out := make([][]smp.TrapNumber, len(hosts))
	f := hosts[0].fabric
	end := f.Now() + d
	f.At(end, func() {})
	m.run(func() bool {
		if act != nil {
			act()
			act = nil
		}
		for i, h := range hosts {
			for _, in := range h.received(m.T) {
				if mad.Method(in[3]) != mad.MethodReport {
					continue
				}
				var n sa.Notice
				if err := n.UnmarshalBinary(in[sa.DataOffset:]); err != nil {
					m.Fatal(err)
				}
				// The manager's own port says that a manager came and went,
				// as it does with every call of Run.
				if n.Notice.TrapNumber != smp.TrapLocalChange || n.Notice.IssuerLID != h.to {
					out[i] = append(out[i], n.Notice.TrapNumber)
				}
				in[3] = byte(mad.MethodReportResp)
				h.send(m.T, &in)
			}
		}
		return f.Now() >= end
	})
	for i := range out {
		slices.Sort(out[i])
	}
	return out
}

// TestReportsEndToEnd: every trap that there are reports of goes in packets from
// the device to the manager and on to subscribers, once; security traps to the
// trusted only; forged ones to nobody.
func TestReportsEndToEnd(t *testing.T) {
	topology := topology.Demo()
	f, err := fabric.New(topology, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	const key ib.SMKey = 0x77
	m := startManager(t, f, topology, filepath.Join(t.TempDir(), "state"), key)
	var cas, switches []ib.NodeGUID
	for _, n := range topology.Nodes {
		if n.Type == ib.NodeCA {
			cas = append(cas, n.GUID)
		} else {
			switches = append(switches, n.GUID)
		}
	}
	first, _, err := topology.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	cas = slices.DeleteFunc(cas, func(g ib.NodeGUID) bool { return g == first.GUID })
	last := len(cas) - 1 // of one tenant: the last three
	trusting, plain, neighbour := newHost(t, f, cas[last]), newHost(t, f, cas[last-1]), cas[last-2]
	all := sa.InformInfo{LIDRangeBegin: 0xFFFF, LIDRangeEnd: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: 0xFFFF, TrapNumber: 0xFFFF, Producer: 0xFFFFFF, QPN: 1}
	for h, k := range map[*host]ib.SMKey{trusting: key, plain: 0} {
		if answer, _ := m.ask(h, mad.MethodSet, sa.AttrInformInfo, 0, &all, k); answer.Status != mad.StatusOK {
			t.Fatalf("subscription: %s", answer.Status)
		}
	}
	issuer := deviceAt(t, f, neighbour, 1)
	lid := issuer.lid
	for number, details := range map[smp.TrapNumber]smp.TrapDetails{
		smp.TrapLinkStateChanged:    &smp.LinkStateDetails{LID: lid},
		smp.TrapLinkIntegrity:       &smp.PortDetails{LID: lid, Port: 1},
		smp.TrapBufferOverrun:       &smp.PortDetails{LID: lid, Port: 1},
		smp.TrapFlowControlWatchdog: &smp.PortDetails{LID: lid, Port: 1},
		smp.TrapLocalChange:         &smp.LocalChangeDetails{LID: lid},
		smp.TrapSystemImageGUID:     &smp.SystemImageGUIDDetails{LID: lid, SystemImageGUID: 7},
		smp.TrapBadMKey:             &smp.BadMKeyDetails{LID: lid},
		smp.TrapBadPKey:             &smp.BadKeyDetails{LID1: lid},
		smp.TrapBadQKey:             &smp.BadKeyDetails{LID1: lid},
	} {
		n, err := smp.NewTrap(number, smp.ProducerCA, lid, details)
		if err != nil {
			t.Fatal(err)
		}
		want := []smp.TrapNumber{number}
		got := m.reportsDuring(3*time.Second, func() { issuer.trap(t, trusting.to, n) }, trusting, plain)
		if !slices.Equal(got[0], want) {
			t.Errorf("trap %d: the trusted subscriber is told of %v", number, got[0])
		}
		if number >= smp.TrapBadMKey {
			want = nil
		}
		if !slices.Equal(got[1], want) {
			t.Errorf("trap %d: the other subscriber is told of %v", number, got[1])
		}
		n.IssuerLID = f.Agent(cas[last]).Port(1).LID
		if got := m.reportsDuring(3*time.Second, func() { issuer.trap(t, trusting.to, n) }, trusting, plain); len(got[0])+len(got[1]) > 0 {
			t.Errorf("trap %d, forged: %v are told of it", number, got)
		}
	}
	forged, err := smp.NewTrap(smp.TrapGIDOutOfService, smp.ProducerClassManager, lid, &smp.GIDDetails{GID: ib.GID{0: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.reportsDuring(3*time.Second, func() { issuer.trap(t, trusting.to, forged) }, trusting, plain); len(got[0])+len(got[1]) > 0 {
		t.Errorf("a host says that a GID went: %v are told of it", got)
	}
	// A switch is seen by the manager alone, here by its own host.
	sw := deviceAt(t, f, switches[0], 0)
	breach, err := smp.NewTrap(smp.TrapSwitchBadPKey, smp.ProducerSwitch, sw.lid, &smp.SwitchBadPKeyDetails{SwitchLID: sw.lid, Port: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.reportsDuring(3*time.Second, func() { sw.trap(t, trusting.to, breach) }, trusting, plain); len(got[0])+len(got[1]) > 0 {
		t.Errorf("trap 259 of a switch that they do not see: %v are told of it", got)
	}
	own(t, f, m, trusting, plain, issuer, neighbour)
}

// own are the traps of the administration itself.
func own(t *testing.T, f *fabric.Fabric, m *manager, trusting, plain *host, issuer *device, neighbour ib.NodeGUID) {
	t.Helper()
	has := func(got []smp.TrapNumber, want smp.TrapNumber) bool { return slices.Contains(got, want) }
	issuer.place.Detach()
	got := m.reportsDuring(30*time.Second, func() {
		if err := f.PowerOff(neighbour); err != nil {
			t.Error(err)
		}
	}, trusting, plain)
	if !has(got[0], smp.TrapGIDOutOfService) || !has(got[1], smp.TrapGIDOutOfService) {
		t.Errorf("a neighbour went: %v", got)
	}
	got = m.reportsDuring(30*time.Second, func() {
		if err := f.PowerOn(neighbour); err != nil {
			t.Error(err)
		}
	}, trusting, plain)
	if !has(got[0], smp.TrapGIDInService) || !has(got[1], smp.TrapGIDInService) {
		t.Errorf("a neighbour came: %v", got)
	}
	h := plain
	var base ib.PKeyBase
	for _, k := range f.Agent(otherCA(topology.Demo())).PKeys(1) {
		if k.IsFull() && k.IsValid() {
			base = k.Base()
		}
	}
	record := &sa.MCMemberRecord{MGID: ib.GID{0: 0xFF, 1: 0x12, 15: 9}, PortGID: h.gid(), PKey: base.Full(), QKey: 7, JoinState: sa.JoinFull}
	const creates = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState | sa.MCMemberRecordPKey |
		sa.MCMemberRecordQKey | sa.MCMemberRecordTClass | sa.MCMemberRecordSL | sa.MCMemberRecordFlowLabel
	if answer, _ := m.ask(h, mad.MethodSet, sa.AttrMCMemberRecord, creates, record, 0); answer.Status != mad.StatusOK {
		t.Fatalf("group: %s", answer.Status)
	}
	if got := m.reportsDuring(5*time.Second, nil, trusting); !has(got[0], smp.TrapMulticastGroupCreated) {
		t.Errorf("a group was created: %v", got)
	}
	const leaves = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState
	if answer, _ := m.ask(h, mad.MethodDelete, sa.AttrMCMemberRecord, leaves, record, 0); answer.Status != mad.StatusOK {
		t.Fatalf("leaving: %s", answer.Status)
	}
	if got := m.reportsDuring(5*time.Second, nil, trusting); !has(got[0], smp.TrapMulticastGroupDeleted) {
		t.Errorf("a group ended: %v", got)
	}
}
