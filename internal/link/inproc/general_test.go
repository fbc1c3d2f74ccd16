package inproc_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// quiet is a watcher that says nothing.
type quiet struct{}

func (quiet) Event(event.Event)       {}
func (quiet) Progress(string, uint64) {}

// host asks subnet administration from another node's queue pair 1.
type host struct {
	fabric *fabric.Fabric
	node   ib.NodeGUID
	device *endpoint.Device
	qp     *endpoint.QP
	to     ib.LID
	rooms  [8][endpoint.GRHSize + mad.Size]byte
}

func newHost(t *testing.T, f *fabric.Fabric, node ib.NodeGUID) *host {
	t.Helper()
	device, err := f.Device(node)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{fabric: f, node: node, device: device, to: f.Agent(node).Port(1).MasterSMLID}
	h.qp, err = device.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.GSI, Port: 1})
	for _, to := range []endpoint.State{endpoint.StateInit, endpoint.StateRTR, endpoint.StateRTS} {
		if err == nil {
			err = h.qp.Modify(endpoint.Kernel, to, 0, endpoint.Attr{})
		}
	}
	for i := range h.rooms {
		if err == nil {
			err = h.qp.PostReceive(endpoint.ReceiveRequest{ID: uint64(i), Buffer: h.rooms[i][:]})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) gid() ib.GID {
	guid, _ := h.fabric.Agent(h.node).GUID(1, 0)
	return ib.MakeGID(h.fabric.Agent(h.node).Port(1).GIDPrefix, ib.PortGUID(guid))
}

func (h *host) send(t *testing.T, m *[mad.Size]byte) {
	t.Helper()
	if err := h.qp.PostSend(endpoint.SendRequest{
		Op: endpoint.OpSend, Data: m[:], RemoteQP: 1, RemoteQKey: ib.QKeyGSI, To: endpoint.Address{DLID: h.to},
	}); err != nil {
		t.Fatal(err)
	}
}

// received is what came since the last call.
func (h *host) received(t *testing.T) (out [][mad.Size]byte) {
	t.Helper()
	var done [8]endpoint.Completion
	for n := h.qp.Poll(done[:]); n > 0; n = h.qp.Poll(done[:]) {
		for _, c := range done[:n] {
			if c.Op != endpoint.OpReceive {
				continue
			}
			out = append(out, [mad.Size]byte(c.Bytes[endpoint.GRHSize:]))
			if err := h.qp.PostReceive(endpoint.ReceiveRequest{ID: c.ID, Buffer: h.rooms[c.ID][:]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

func request(t *testing.T, method mad.Method, attribute mad.AttributeID) *[mad.Size]byte {
	t.Helper()
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: method, TransactionID: 77, AttributeID: attribute,
	}}
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return (*[mad.Size]byte)(b)
}

// TestAdministration asks the administration beside a manager from another host,
// in packets through the fabric: one datagram, and a table that takes many.
func TestAdministration(t *testing.T) {
	topology := topology.Demo()
	f, err := fabric.New(topology, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := topology.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	r := daemon.NewRunner(l, engine.Config{Routing: routing.UpDown, Periods: engine.Periods{Sweep: time.Minute, Drift: time.Hour}}, server.Config{}, policy, quiet{})
	if err := r.Run(t.Context(), r.Engine().Settled); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, f, otherCA(topology))
	var got [][mad.Size]byte
	h.send(t, request(t, mad.MethodGet, mad.AttrClassPortInfo))
	if err := r.Run(t.Context(), func() bool { got = append(got, h.received(t)...); return len(got) > 0 }); err != nil {
		t.Fatal(err)
	}
	if m := got[0]; m[3] != byte(mad.MethodGetResp) || m[4]|m[5] != 0 {
		t.Errorf("ClassPortInfo: method %#x, status %#x", m[3], m[4:6])
	}
	joins := rmpp.New[mad.Address](rmpp.DefaultLimits())
	var whole *rmpp.Message
	h.send(t, request(t, mad.MethodGetTable, sa.AttrNodeRecord))
	if err := r.Run(t.Context(), func() bool {
		for _, m := range h.received(t) {
			if x := joins.Receive(f.Now(), mad.Address{}, &m); x != nil {
				whole = x
			}
		}
		var m [mad.Size]byte
		for _, ok := joins.Next(f.Now(), &m); ok; _, ok = joins.Next(f.Now(), &m) {
			h.send(t, &m)
		}
		return whole != nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := len(whole.Body) / sa.NodeRecordSize; n < 5 {
		t.Errorf("%d NodeRecords in %d bytes, want those of a tenant", n, len(whole.Body))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := inproc.New(f, node.GUID, num, false); err != nil {
		t.Errorf("the place was not given back: %v", err)
	}
}
