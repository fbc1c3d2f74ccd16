package inproc_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// manager is one run of a manager with a state file, until it is stopped or
// crashes.
type manager struct {
	*testing.T
	link   *inproc.Link
	runner *daemon.Runner
	path   string
	saves  int
	broken bool // the disk is full
}

func startManager(t *testing.T, f *fabric.Fabric, topology *topology.Netlist, path string, key ib.SMKey) *manager {
	t.Helper()
	node, num, err := topology.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{T: t, path: path}
	if m.link, err = inproc.New(f, node.GUID, num, false); err != nil {
		t.Fatal(err)
	}
	policy, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	assigned, err := files.LoadState(path)
	if err != nil {
		t.Fatal(err)
	}
	registered, some, err := files.LoadRegistered(path, key)
	if err != nil {
		t.Fatal(err)
	}
	m.runner = daemon.NewRunner(m.link, engine.Config{
		Routing: routing.UpDown, Periods: engine.Periods{Sweep: time.Minute, Drift: time.Hour}, Known: assigned, Reregister: !some,
	}, server.Config{SAKey: key, Keep: true}, policy, quiet{})
	err = m.runner.Keep(registered.State, func(s server.State) error {
		if m.broken {
			return errors.New("no space left")
		}
		m.saves++
		return files.SaveStates(path, m.runner.Engine().Assigned(), files.Registered{State: s, SAKey: key})
	})
	if err != nil {
		t.Fatal(err)
	}
	m.run(m.runner.Engine().Settled)
	return m
}

func (m *manager) run(done func() bool) {
	m.Helper()
	if err := m.runner.Run(m.Context(), done); err != nil {
		m.Fatal(err)
	}
}

// ask has a host send a request and returns the answer; the state file is looked
// at in the instant in which the answer arrives.
func (m *manager) ask(h *host, method mad.Method, id mad.AttributeID, mask sa.ComponentMask, r sa.Record, key ib.SMKey) (answer sa.MAD, there files.Registered) {
	m.Helper()
	q := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: method, TransactionID: uint64(h.fabric.Now()), AttributeID: id,
	}, ComponentMask: mask, SMKey: key}
	if r != nil {
		b, err := r.AppendBinary(nil)
		if err != nil {
			m.Fatal(err)
		}
		copy(q.Data[:], b)
	}
	b, err := q.AppendBinary(nil)
	if err != nil {
		m.Fatal(err)
	}
	h.send(m.T, (*[mad.Size]byte)(b))
	m.run(func() bool {
		got := h.received(m.T)
		for i := range got {
			if mad.Method(got[i][3]) == mad.MethodReport {
				continue
			}
			if err := answer.UnmarshalBinary(got[i][:]); err != nil {
				m.Fatal(err)
			}
			if there, _, err = files.LoadRegistered(m.path, key); err != nil {
				m.Fatal(err)
			}
			return true
		}
		return false
	})
	return answer, there
}

// reregisters counts how often the host's software was told to register again.
func (h *host) reregisters() (n int) {
	for {
		e, ok := h.device.NextEvent()
		if !ok {
			return n
		}
		if e.Kind == endpoint.EventClientReregister {
			n++
		}
	}
}

func otherCA(topology *topology.Netlist) (guid ib.NodeGUID) {
	first, _, _ := topology.Attach("")
	for _, n := range topology.Nodes {
		if n.Type == ib.NodeCA && n.GUID != first.GUID {
			guid = n.GUID
		}
	}
	return guid
}

// burstSize is how many services burst registers.
const burstSize = 6

// burst has a host register services one behind the other, sooner than they can
// be saved one by one: each is in the file when the host is told.
func (m *manager) burst(h *host, gid ib.GID, key ib.SMKey) {
	m.Helper()
	saves := m.saves
	for i := range burstSize {
		q := sa.MAD{Header: mad.Header{
			BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
			Method: mad.MethodSet, TransactionID: uint64(7000 + i), AttributeID: sa.AttrServiceRecord,
		}, ComponentMask: sa.ServiceRecordServiceID | sa.ServiceRecordServiceGID}
		b, err := (&sa.ServiceRecord{ServiceID: uint64(100 + i), ServiceGID: gid}).AppendBinary(nil)
		if err != nil {
			m.Fatal(err)
		}
		copy(q.Data[:], b)
		if b, err = q.AppendBinary(nil); err != nil {
			m.Fatal(err)
		}
		h.send(m.T, (*[mad.Size]byte)(b))
	}
	told := 0
	m.run(func() bool {
		for _, got := range h.received(m.T) {
			if mad.Method(got[3]) != mad.MethodGetResp {
				continue
			}
			told++
			there, _, err := files.LoadRegistered(m.path, key)
			if err != nil {
				m.Fatal(err)
			}
			id := uint64(100 + got[15] - 7000&0xFF)
			if !slices.ContainsFunc(there.Services, func(x server.Service) bool { return x.Record.ServiceID == id }) {
				m.Errorf("the host was told of service %d, and the file does not have it", id)
			}
		}
		return told == burstSize
	})
	if m.saves-saves >= burstSize {
		m.Errorf("%d services at once were saved %d times", burstSize, m.saves-saves)
	}
}

// TestRestart: what a host was told of outlives a manager that crashed in the
// instant after, leases go on, and hosts are asked to register again only when
// nothing is known of what they registered.
func TestRestart(t *testing.T) {
	topology := topology.Demo()
	f, err := fabric.New(topology, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "state.json")
	const key ib.SMKey = 0x77
	m := startManager(t, f, topology, path, key)
	h := newHost(t, f, otherCA(topology))
	port := f.Agent(otherCA(topology)).Port(1)
	guid, _ := f.Agent(otherCA(topology)).GUID(1, 0)
	gid := ib.MakeGID(port.GIDPrefix, ib.PortGUID(guid))
	h.reregisters()

	service := &sa.ServiceRecord{ServiceID: 5, ServiceGID: gid, ServicePKey: f.Agent(otherCA(topology)).PKeys(1)[0], ServiceLease: 3600}
	answer, there := m.ask(h, mad.MethodSet, sa.AttrServiceRecord, sa.ServiceRecordServiceID|sa.ServiceRecordServiceGID|sa.ServiceRecordServicePKey|sa.ServiceRecordServiceLease, service, key)
	if answer.Status != mad.StatusOK || len(there.Services) != 1 {
		t.Fatalf("service: %s, %d in the file when the host was told", answer.Status, len(there.Services))
	}
	inform := &sa.InformInfo{LIDRangeBegin: 0xFFFF, LIDRangeEnd: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: 0xFFFF, TrapNumber: 0xFFFF, Producer: 0xFFFFFF, QPN: 1}
	answer, there = m.ask(h, mad.MethodSet, sa.AttrInformInfo, 0, inform, 0)
	if answer.Status != mad.StatusOK || len(there.Subscriptions) != 1 {
		t.Fatalf("subscription: %s, %d in the file when the host was told", answer.Status, len(there.Subscriptions))
	}
	inform.TrapNumber = smp.TrapBadPKey
	if answer, there = m.ask(h, mad.MethodSet, sa.AttrInformInfo, 0, inform, key); answer.Status != mad.StatusOK || len(there.Subscriptions) != 2 {
		t.Fatalf("trusted subscription: %s, %d in the file when the host was told", answer.Status, len(there.Subscriptions))
	}
	group := &sa.MCMemberRecord{
		MGID: ib.GID{0: 0xFF, 1: 0x12, 15: 9}, PortGID: gid, PKey: 0xFFFF, QKey: 7, JoinState: sa.JoinFull,
	}
	const creates = sa.MCMemberRecordMGID | sa.MCMemberRecordPortGID | sa.MCMemberRecordJoinState | sa.MCMemberRecordPKey |
		sa.MCMemberRecordQKey | sa.MCMemberRecordTClass | sa.MCMemberRecordSL | sa.MCMemberRecordFlowLabel
	base := f.Agent(otherCA(topology)).PKeys(1)[0].Base()
	for _, k := range f.Agent(otherCA(topology)).PKeys(1) {
		if k.IsFull() && k.IsValid() {
			base = k.Base()
		}
	}
	group.PKey = base.Full()
	answer, there = m.ask(h, mad.MethodSet, sa.AttrMCMemberRecord, creates, group, 0)
	if answer.Status != mad.StatusOK || len(there.Groups.Groups) == 0 {
		t.Fatalf("group: %s, %d in the file when the host was told", answer.Status, len(there.Groups.Groups))
	}
	var made sa.MCMemberRecord
	if err := made.UnmarshalBinary(answer.Data[:]); err != nil {
		t.Fatal(err)
	}
	m.burst(h, gid, key)
	m.link.Close() // and not a word more: a crash

	m = startManager(t, f, topology, path, key)
	if n := h.reregisters(); n != 0 {
		t.Errorf("after a restart that lost nothing the host was told %d times to register again", n)
	}
	s := m.runner.Registered()
	if len(s.Services) != 1+burstSize || s.Services[0].Left <= 0 || s.Services[0].Left > time.Hour {
		t.Errorf("services after the restart: %+v", s.Services)
	}
	if len(s.Subscriptions) != 2 {
		t.Errorf("subscriptions after the restart: %+v", s.Subscriptions)
	}
	found := false
	for _, g := range s.Groups.Groups {
		if g.MGID == group.MGID {
			found = g.MLID == made.MLID && len(g.Members) == 1 && g.Members[0].GID == gid
		}
	}
	if !found {
		t.Errorf("groups after the restart: %+v, want %s with MLID %s", s.Groups.Groups, group.MGID, made.MLID)
	}
	saves := m.saves
	m.ask(h, mad.MethodGet, sa.AttrMCMemberRecord, sa.MCMemberRecordMGID, group, 0)
	if m.saves != saves {
		t.Error("a question was kept")
	}
	// A disk that is full keeps nobody waiting.
	m.broken = true
	leave := &sa.ServiceRecord{ServiceID: 5, ServiceGID: gid, ServicePKey: service.ServicePKey}
	if answer, _ = m.ask(h, mad.MethodDelete, sa.AttrServiceRecord, sa.ServiceRecordServiceID|sa.ServiceRecordServiceGID|sa.ServiceRecordServicePKey, leave, key); answer.Status != mad.StatusOK {
		t.Errorf("with a full disk: %s", answer.Status)
	}
	m.broken = false
	m.link.Close()

	// Another SA_Key: who was trusted is not any more.
	if r, _, err := files.LoadRegistered(path, key+1); err != nil || len(r.Subscriptions) != 1 {
		t.Errorf("with another SA_Key: %d subscriptions (%v), want the one that needs no trust", len(r.Subscriptions), err)
	}
	// Nothing is known: everybody is asked, once.
	m = startManager(t, f, topology, filepath.Join(t.TempDir(), "none"), key)
	if n := h.reregisters(); n != 1 {
		t.Errorf("without a state the host was told %d times to register again, want 1", n)
	}
	end := f.Now() + 3*time.Minute
	f.At(end, func() {})
	m.run(func() bool { return f.Now() >= end })
	if n := h.reregisters(); n != 0 {
		t.Errorf("it was told %d times more", n)
	}
}
