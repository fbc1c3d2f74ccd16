package verbsd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// bench is a simulator whose fabric is used under a lock. Nobody brings it up.
type bench struct {
	mutex    sync.Mutex
	fabric   *fabric.Fabric
	topology *topology.Netlist
	server   *Server
	ended    error // of the simulator
}

func (b *bench) Do(call func(*fabric.Fabric)) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.ended != nil {
		return b.ended
	}
	call(b.fabric)
	b.server.Turn()
	return nil
}

func (b *bench) Topology() *topology.Netlist { return b.topology }

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{topology: topology.Demo()}
	var err error
	if b.fabric, err = fabric.New(b.topology, fabric.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	b.server = New(b)
	return b
}

// connect gives the program's end of a connection.
func (b *bench) connect(t testing.TB, root bool) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	ctx, end := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		b.server.ServeConn(ctx, there, root)
	}()
	t.Cleanup(func() {
		here.Close()
		end()
		<-served
	})
	return here
}

// open opens the device of a host.
func (b *bench) open(t testing.TB, node string) *verbs.Device {
	t.Helper()
	d, err := verbs.Open(b.connect(t, false), node)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// raw is a connection that was opened, for requests that Device would not send.
func (b *bench) raw(t testing.TB, node string) net.Conn {
	t.Helper()
	c := b.connect(t, false)
	if a := ask(t, c, verbs.Request{Call: verbs.CallOpen, Version: verbs.ProtocolVersion, Node: node}); a.Err() != nil {
		t.Fatal(a.Err())
	}
	return c
}

func ask(t testing.TB, c net.Conn, r verbs.Request) *verbs.Answer {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if err := verbs.WriteFrame(c, &r); err != nil {
		t.Fatal(err)
	}
	var a verbs.Answer
	if err := verbs.ReadFrame(c, &a); err != nil {
		t.Fatalf("%s: %v", r.Call, err)
	}
	return &a
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// TestNonsense: what is no request ends its connection, with an answer where one can
// be given, and takes nothing with it.
func TestNonsense(t *testing.T) {
	frame := func(length uint32, body string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, length), body...)
	}
	whole := func(body string) []byte { return frame(uint32(len(body)), body) }
	const open = `{"Number":1,"Call":"open","Version":2,"Node":"red-1"}`
	for name, tt := range map[string]struct {
		opened bool
		bytes  []byte
		code   string // of the answer; empty for none
	}{
		"too long":                {false, frame(verbs.MaxFrame+1, ""), "protocol"},
		"longest length, nothing": {false, frame(math.MaxUint32, ""), "protocol"},
		"no JSON":                 {false, whole("hello"), "protocol"},
		"empty":                   {false, whole(""), "protocol"},
		"array":                   {false, whole("[]"), "protocol"},
		"unknown field":           {false, whole(`{"Call":"open","Version":2,"UID":0}`), "protocol"},
		"two values":              {false, whole(open + open), "protocol"},
		"number too large":        {false, whole(`{"Call":"open","Version":99999999999999999999}`), "protocol"},
		"other version":           {false, whole(`{"Call":"open","Version":1}`), "protocol"},
		"no version":              {false, whole(`{"Call":"open"}`), "protocol"},
		"not open":                {false, whole(`{"Call":"query-device"}`), "protocol"},
		"no such host":            {false, whole(`{"Call":"open","Version":2,"Node":"\u001b[31m"}`), "node"},
		"privileged, not root":    {false, whole(`{"Call":"open","Version":2,"Privileged":true}`), "permission"},
		"later: no JSON":          {true, whole("hello"), "protocol"},
		"later: unknown field":    {true, whole(`{"Call":"query-port","Host":"blue-1"}`), "protocol"},
		"later: too long":         {true, frame(verbs.MaxFrame+1, ""), "protocol"},
		"later: port 256":         {true, whole(`{"Call":"query-port","Port":256}`), "protocol"},
		"later: base64":           {true, whole(`{"Call":"write-memory","Data":"***"}`), "protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var c net.Conn
			if tt.opened {
				c = b.raw(t, "red-1")
			} else {
				c = b.connect(t, false)
			}
			if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = c.Write(tt.bytes) }() // the other end may close before it has all
			var a verbs.Answer
			if err := verbs.ReadFrame(c, &a); err != nil {
				t.Fatal(err)
			}
			if a.Code != tt.code {
				t.Errorf("answer %+v, want %s", a, tt.code)
			}
			if strings.ContainsRune(a.Text, 0x1B) {
				t.Errorf("the answer has an escape of the request: %q", a.Text)
			}
			if err := verbs.ReadFrame(c, &a); !errors.Is(err, io.EOF) {
				t.Errorf("the connection goes on: %v", err)
			}
			b.idle(t)
		})
	}
}

// idle checks that nobody has anything.
func (b *bench) idle(t testing.TB) {
	t.Helper()
	need.Eventually(t, need.Patience, "no session is left", func() bool {
		hosts := 0
		if err := b.Do(func(*fabric.Fabric) { hosts = len(b.server.hosts) }); err != nil {
			t.Fatal(err)
		}
		return hosts == 0
	})
}

// TestOneHost: a connection is one host's for good, and what it is called by others
// is nothing to it.
func TestOneHost(t *testing.T) {
	b := newBench(t)
	c := b.raw(t, "red-1")
	for _, node := range []string{"blue-1", "red-1"} {
		a := ask(t, c, verbs.Request{Call: verbs.CallOpen, Version: verbs.ProtocolVersion, Node: node})
		wantErr(t, "a second open", a.Err(), verbs.ErrProtocol)
	}
	red, err := b.topology.Find("red-1")
	if err != nil {
		t.Fatal(err)
	}
	a := ask(t, c, verbs.Request{Call: verbs.CallQueryDevice, Node: "blue-1"})
	if a.Err() != nil || a.Device.NodeGUID != red.GUID {
		t.Errorf("query as blue-1: %+v, %v", a.Device, a.Err())
	}
}

// TestForeignHandles: handles, of one host or of two, mean nothing on another
// connection, nor where something of another kind is wanted.
func TestForeignHandles(t *testing.T) {
	for _, node := range []string{"red-1", "blue-1"} {
		b := newBench(t)
		own, other := b.raw(t, "red-1"), b.raw(t, node)
		for _, r := range []verbs.Request{
			{Call: verbs.CallCreateCQ, Count: 4}, {Call: verbs.CallCreateQP, Type: verbs.QPTypeUD, CQ: 1, ReceiveCQ: 1},
			{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1}}, {Call: verbs.CallRegister, Count: 8},
			{Call: verbs.CallCreateEE},
		} {
			if a := ask(t, own, r); a.Err() != nil {
				t.Fatal(r.Call, a.Err())
			}
		}
		calls := []verbs.Request{
			{Call: verbs.CallPoll, Count: 1}, {Call: verbs.CallDestroyCQ}, {Call: verbs.CallDestroyQP}, {Call: verbs.CallQueryQP},
			{Call: verbs.CallModifyQP, Mask: verbs.AttrState, Attr: &verbs.QPAttr{State: verbs.StateErr}},
			{Call: verbs.CallPostSend, Send: &verbs.SendRequest{}}, {Call: verbs.CallPostReceive, Count: 1},
			{Call: verbs.CallAttach, Address: &verbs.AHAttr{}}, {Call: verbs.CallDetach, Address: &verbs.AHAttr{}},
			{Call: verbs.CallDestroyAH}, {Call: verbs.CallDeregister}, {Call: verbs.CallReadMemory, Count: 1},
			{Call: verbs.CallWriteMemory, Data: []byte("x")}, {Call: verbs.CallDestroyEE}, {Call: verbs.CallQueryEE},
			{Call: verbs.CallModifyEE, Mask: verbs.AttrState, Attr: &verbs.QPAttr{State: verbs.StateErr}},
		}
		for _, r := range calls {
			for handle := range uint32(7) {
				r.Object = handle
				wantErr(t, string(r.Call), ask(t, other, r).Err(), verbs.ErrDestroyed)
			}
		}
		wantErr(t, "a queue pair on another's queue", ask(t, other, verbs.Request{
			Call: verbs.CallCreateQP, Type: verbs.QPTypeUD, CQ: 1, ReceiveCQ: 1,
		}).Err(), verbs.ErrDestroyed)
		for _, r := range calls { // each is for one kind of object
			fits := 0
			for handle := range uint32(7) {
				r.Object = handle
				if r.Call == verbs.CallPoll || strings.HasPrefix(string(r.Call), "query") {
					if ask(t, own, r).Err() == nil {
						fits++
					}
				}
			}
			if fits > 1 {
				t.Errorf("%s takes %d objects of five kinds", r.Call, fits)
			}
		}
	}
}

// TestSizes: lengths, counts and places that are not possible.
func TestSizes(t *testing.T) {
	c := newBench(t).raw(t, "red-1")
	for _, r := range []verbs.Request{
		{Call: verbs.CallCreateCQ, Count: 16},
		{Call: verbs.CallCreateQP, Type: verbs.QPTypeUD, CQ: 1, ReceiveCQ: 1},
		{Call: verbs.CallRegister, Count: 64},
		{Call: verbs.CallModifyQP, Object: 2, Mask: verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrQKey, Attr: &verbs.QPAttr{State: verbs.StateInit, Port: 1}},
		{Call: verbs.CallCreateEE},
	} {
		if a := ask(t, c, r); a.Err() != nil {
			t.Fatal(r.Call, a.Err())
		}
	}
	const most = math.MaxInt
	var story golden.Story // with the words of each error
	for _, tt := range []struct {
		r    verbs.Request
		want error
	}{
		{verbs.Request{Call: verbs.CallCreateCQ}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateCQ, Count: -1}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateCQ, Count: most}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallPoll, Object: 1}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallPoll, Object: 1, Count: -5}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallCreateQP, Type: 77, CQ: 1, ReceiveCQ: 1}, verbs.ErrService},
		{verbs.Request{Call: verbs.CallCreateQP, Type: verbs.QPTypeRD, CQ: 1, ReceiveCQ: 1}, verbs.ErrService},
		{verbs.Request{Call: verbs.CallCreateQP, CQ: 1, ReceiveCQ: 1, SendDepth: most}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateQP, CQ: 1, ReceiveCQ: 1, ReceiveDepth: -1}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateQP, CQ: 1, ReceiveCQ: 9}, verbs.ErrDestroyed},
		{verbs.Request{Call: verbs.CallCreateQP, CQ: 9, ReceiveCQ: 1}, verbs.ErrDestroyed},
		{verbs.Request{Call: verbs.CallModifyEE, Object: 4}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallModifyEE, Object: 4, Mask: verbs.AttrQKey, Attr: &verbs.QPAttr{}}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallModifyEE, Object: 2}, verbs.ErrDestroyed},
		{verbs.Request{Call: verbs.CallDetach, Object: 2}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1}}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1, FlowLabel: 1 << 20}}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1, Global: true, SGIDIndex: 32}}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1, SL: 15, SGIDIndex: 32, FlowLabel: 1<<20 - 1}}, nil},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1, Global: true, SGIDIndex: 31}}, nil},
		{verbs.Request{Call: verbs.CallReadMemory, Object: 3, Index: 64}, nil},
		{verbs.Request{Call: verbs.CallReadMemory, Object: 3, Index: 65}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallReadMemory, Object: 3, Count: 64}, nil},
		{verbs.Request{Call: verbs.CallCreateCQ, Count: MaxCQDepth}, nil},
		{verbs.Request{Call: verbs.CallCreateCQ, Count: MaxCQDepth + 1}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallModifyQP, Object: 2}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallModifyQP, Object: 2, Mask: 1 << 31, Attr: &verbs.QPAttr{}}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallModifyQP, Object: 2, Mask: verbs.AttrState, Attr: &verbs.QPAttr{State: 200}}, verbs.ErrState},
		{verbs.Request{Call: verbs.CallPostReceive, Object: 2, Count: -1}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallPostReceive, Object: 2, Count: most}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallPostSend, Object: 2}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallPostSend, Object: 2, Send: &verbs.SendRequest{SendWR: verbs.SendWR{Op: verbs.OpRead, Length: -1}}}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallPostSend, Object: 2, Send: &verbs.SendRequest{SendWR: verbs.SendWR{Op: verbs.OpRead, Length: most}}}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallPostSend, Object: 2, Send: &verbs.SendRequest{SendWR: verbs.SendWR{Op: 9}}}, verbs.ErrService},
		{verbs.Request{Call: verbs.CallPostSend, Object: 2, Send: &verbs.SendRequest{SendWR: verbs.SendWR{Data: make([]byte, verbs.MaxMessage+1)}}}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallAttach, Object: 2}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallAttach, Object: 2, Address: &verbs.AHAttr{DLID: 5}}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallDetach, Object: 2, Address: &verbs.AHAttr{DLID: 0xC001}}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallCreateAH}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 9, DLID: 1}}, verbs.ErrPort},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1, SL: 16}}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1, Global: true, SGIDIndex: 255}}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallRegister}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallRegister, Count: -1}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallRegister, Count: most}, verbs.ErrFull},
		{verbs.Request{Call: verbs.CallRegister, Count: 1, Access: 0xFF}, verbs.ErrAttribute},
		{verbs.Request{Call: verbs.CallRegister, Count: 2, VirtualAddress: math.MaxUint64}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallReadMemory, Object: 3, Index: -1, Count: 1}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallReadMemory, Object: 3, Index: most, Count: 1}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallReadMemory, Object: 3, Index: 1, Count: 64}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallReadMemory, Object: 3, Count: -1}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallWriteMemory, Object: 3, Index: 60, Data: []byte("12345")}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallQueryPKey, Port: 1, Index: -1}, verbs.ErrPKeyIndex},
		{verbs.Request{Call: verbs.CallQueryPKey, Port: 2}, verbs.ErrPort},
		{verbs.Request{Call: verbs.CallQueryGID, Port: 1, Index: -1}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallQueryGID, Port: 1, Index: most}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallJoin, Port: 1}, verbs.ErrRequest},
		{verbs.Request{Call: verbs.CallJoin, Port: 1, Index: 90}, verbs.ErrPKeyEmpty},
		{verbs.Request{Call: verbs.CallJoin, Port: 1, Index: -1}, verbs.ErrPKeyIndex},
		{verbs.Request{Call: verbs.CallJoin, Port: 1, Address: &verbs.AHAttr{DGID: ib.GID{0xFF}}}, verbs.ErrTimeout}, // nobody manages
		{verbs.Request{Call: "format-disk"}, verbs.ErrProtocol},
		{verbs.Request{Call: ""}, verbs.ErrProtocol},
	} {
		err := ask(t, c, tt.r).Err()
		wantErr(t, string(tt.r.Call), err, tt.want)
		story.Add(fmt.Sprintf("%s: %v", tt.r.Call, err), "")
	}
	story.Check(t, "sizes.txt")
}

// TestLimits: no connection piles up more than it may, and what it has it loses with
// its end.
func TestLimits(t *testing.T) {
	b := newBench(t)
	c := b.raw(t, "red-1")
	many := func(what string, most int, r verbs.Request, want error) {
		t.Helper()
		for i := range most + 1 {
			a := ask(t, c, r)
			if i < most && a.Err() != nil {
				t.Fatalf("%s %d: %v", what, i, a.Err())
			}
			if i == most {
				wantErr(t, what, a.Err(), want)
			}
		}
	}
	many("completion queues", MaxCQs, verbs.Request{Call: verbs.CallCreateCQ, Count: 1}, verbs.ErrFull)
	many("queue pairs", MaxQPs, verbs.Request{Call: verbs.CallCreateQP, Type: verbs.QPTypeUD, CQ: 1, ReceiveCQ: 1, ReceiveDepth: MaxQueueDepth}, verbs.ErrFull)
	wantErr(t, "RD queue pairs", ask(t, c, verbs.Request{Call: verbs.CallCreateQP, RD: true, CQ: 1, ReceiveCQ: 1}).Err(), verbs.ErrFull)
	many("address handles", MaxAHs, verbs.Request{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1}}, verbs.ErrFull)
	many("EE contexts", MaxEEs, verbs.Request{Call: verbs.CallCreateEE}, verbs.ErrFull)
	many("memory regions", MaxRegions, verbs.Request{Call: verbs.CallRegister, Count: 1}, verbs.ErrFull)
	const qp = MaxCQs + 1
	if a := ask(t, c, verbs.Request{
		Call: verbs.CallModifyQP, Object: qp, Mask: verbs.AttrState | verbs.AttrPort | verbs.AttrPKeyIndex | verbs.AttrQKey,
		Attr: &verbs.QPAttr{State: verbs.StateInit, Port: 1},
	}); a.Err() != nil {
		t.Fatal(a.Err())
	}
	group := verbs.AHAttr{DLID: 0xC001, DGID: ib.GID{0xFF}}
	for i := range MaxAttachments + 1 {
		group.DGID[15] = byte(i)
		if a := ask(t, c, verbs.Request{Call: verbs.CallAttach, Object: qp, Address: &group}); (a.Err() != nil) != (i == MaxAttachments) {
			t.Fatalf("attachment %d: %v", i, a.Err())
		}
	}
	const bytes = verbs.MaxMessage
	many("bytes", (MaxBytes-MaxRegions)/(bytes+requestBytes+40), verbs.Request{Call: verbs.CallPostReceive, Object: qp, Count: bytes}, verbs.ErrFull)
	if a := ask(t, c, verbs.Request{Call: verbs.CallModifyQP, Object: qp, Mask: verbs.AttrState, Attr: &verbs.QPAttr{}}); a.Err() != nil {
		t.Fatal(a.Err())
	}
}

// TestConnections: so many programs, and no more; who does not say what he wants
// keeps his place for a bounded time only.
func TestConnections(t *testing.T) {
	b := newBench(t)
	for range MaxConnections {
		b.open(t, "red-1")
	}
	_, err := verbs.Open(b.connect(t, false), "red-1")
	wantErr(t, "one more", err, verbs.ErrFull)
}

// TestWaits: calls that wait are bounded, and each is answered when its time is over
// or something comes.
func TestWaits(t *testing.T) {
	b := newBench(t)
	c := b.raw(t, "red-1")
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for i := range MaxWaits {
		if err := verbs.WriteFrame(c, &verbs.Request{Number: uint64(i), Call: verbs.CallNextEvent, Wait: int64(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, "one more", ask(t, c, verbs.Request{Call: verbs.CallNextEvent, Wait: 1}).Err(), verbs.ErrFull)
	red, err := b.topology.Find("red-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Do(func(f *fabric.Fabric) { err = f.PowerOff(red.GUID) }); err != nil {
		t.Fatal(err)
	}
	var a verbs.Answer
	if err := verbs.ReadFrame(c, &a); err != nil || a.Event == nil || a.Event.Type != verbs.EventDeviceFatal {
		t.Fatalf("%+v, %v; want that the device is no more", a, err)
	}
	wantErr(t, "a query afterwards", ask(t, c, verbs.Request{Call: verbs.CallQueryPort, Port: 1}).Err(), verbs.ErrRemoved)
	c.Close()
	b.idle(t)
}

// TestSilentReader: who takes no answers keeps nobody else waiting.
func TestSilentReader(t *testing.T) {
	b := newBench(t)
	c, other := b.raw(t, "red-1"), b.open(t, "red-1")
	go func() {
		for verbs.WriteFrame(c, &verbs.Request{Call: verbs.CallQueryDevice}) == nil {
		}
	}()
	for range 100 {
		if _, err := other.QueryPort(1); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
}

// TestPrivilege: reserved Q_Keys are for root, and only where root asks for it.
func TestPrivilege(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		root    bool
		options []verbs.Option
		opens   bool
		sets    bool
	}{{false, nil, true, false}, {true, nil, true, false}, {true, []verbs.Option{verbs.Privileged()}, true, true}, {false, []verbs.Option{verbs.Privileged()}, false, false}} {
		d, err := verbs.Open(b.connect(t, tt.root), "red-1", tt.options...)
		if !tt.opens {
			wantErr(t, "open", err, verbs.ErrPermission)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		cq, err := d.CreateCQ(1)
		if err != nil {
			t.Fatal(err)
		}
		qp, err := d.CreateQP(verbs.QPInit{Type: verbs.QPTypeUD, SendCQ: cq, ReceiveCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		err = qp.Modify(verbs.QPAttr{State: verbs.StateInit, Port: 1, QKey: ib.QKeyGSI}, verbs.AttrState|verbs.AttrPort|verbs.AttrPKeyIndex|verbs.AttrQKey)
		if (err == nil) != tt.sets {
			t.Errorf("root %v, %d options: %v", tt.root, len(tt.options), err)
		}
	}
}

// FuzzRequest sends requests, whatever they say, to a session that has one object of
// each kind. What it has is counted right, and is gone with its end.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"Call":"create-qp","Type":2,"CQ":1,"ReceiveCQ":1}`, `{"Call":"destroy-qp","Object":2}`,
		`{"Call":"modify-qp","Object":2,"Mask":15,"Attr":{"State":1,"Port":1,"QKey":5}}`,
		`{"Call":"modify-qp","Object":2,"Mask":1,"Attr":{"State":0}}`,
		`{"Call":"post-receive","Object":2,"Count":100}`, `{"Call":"register","Count":100,"Access":3}`,
		`{"Call":"post-send","Object":2,"Send":{"Data":"aGVsbG8=","AH":3,"RemoteQPN":2}}`, `{"Call":"destroy-cq","Object":1}`,
		`{"Call":"modify-ee","Object":4,"Mask":7,"Attr":{"State":1,"Port":1}}`, `{"Call":"poll","Object":1,"Count":5}`,
		`{"Call":"join","Port":1,"Address":{"DGID":[255,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}}`, `{"Call":"next-event"}`,
		`{"Call":"attach","Object":2,"Address":{"DLID":49153,"DGID":[255,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}}`,
	} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		b := newBench(t)
		c := b.raw(t, "red-1")
		for _, r := range []verbs.Request{
			{Call: verbs.CallCreateCQ, Count: 2}, {Call: verbs.CallCreateQP, Type: verbs.QPTypeUD, CQ: 1, ReceiveCQ: 1},
			{Call: verbs.CallCreateAH, Address: &verbs.AHAttr{Port: 1, DLID: 1}}, {Call: verbs.CallCreateEE},
		} {
			if a := ask(t, c, r); a.Err() != nil {
				t.Fatal(a.Err())
			}
		}
		for _, body := range [][]byte{first, second} {
			if c.SetDeadline(time.Now().Add(time.Minute)) != nil {
				break // closed already
			}
			go func() { _, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)) }()
			var a verbs.Answer
			if err := verbs.ReadFrame(c, &a); err != nil {
				break // it was no request, and the connection has ended
			}
		}
		_ = b.Do(func(*fabric.Fabric) {
			for _, h := range b.server.hosts {
				for _, s := range h.sessions {
					s.check(t)
				}
			}
		})
		c.Close()
		b.idle(t)
	})
}

// check adds up what a session has.
func (s *session) check(t testing.TB) {
	t.Helper()
	bytes, groups := 0, 0
	for _, r := range s.regions {
		bytes += len(r.bytes)
	}
	for _, p := range s.inOrder {
		groups += p.qp.Groups()
		for _, r := range p.open {
			bytes += r.bytes
		}
	}
	for _, q := range s.cqs {
		for _, c := range q.done {
			bytes += c.bytes
		}
	}
	if bytes != s.bytes || bytes > MaxBytes || groups != s.attachments || len(s.inOrder) != len(s.qps) {
		t.Errorf("%d bytes, counted %d; %d groups, counted %d; %d queue pairs, %d in order", bytes, s.bytes, groups, s.attachments, len(s.qps), len(s.inOrder))
	}
}
