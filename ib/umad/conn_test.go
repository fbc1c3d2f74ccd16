package umad_test

import (
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/discover"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/umadtest"
)

func connect(t *testing.T) (*umadtest.Host, *umad.Conn) {
	t.Helper()
	h, err := umadtest.New(topology.Demo(), "red-1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := h.OpenMAD()
	if err != nil {
		t.Fatal(err)
	}
	c, err := umad.NewConn(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return h, c
}

func request(t *testing.T, route ...ib.PortNum) []byte {
	t.Helper()
	p := discover.Get(route, smp.AttrNodeInfo, 0)
	p.TransactionID = 7
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var directed = umad.Registration{Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion}

// What is sent by an agent is answered to it; what nobody answers comes back with
// ETIMEDOUT; and nothing comes of nothing.
func TestConn(t *testing.T) {
	h, c := connect(t)
	id, err := c.Register(directed)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.Register(directed)
	if err != nil || other == id {
		t.Fatalf("a second agent is %d, %v", other, err)
	}
	header := umad.Header{ID: id, LID: ib.LIDPermissive, TimeoutMilliseconds: 50}
	if err := c.Send(header, request(t, 1)); err != nil {
		t.Fatal(err)
	}
	got, message, err := c.Receive(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var p mad.SMP
	var info smp.NodeInfo
	if err := errors.Join(p.UnmarshalBinary(message), info.UnmarshalBinary(p.Data[:])); err != nil {
		t.Fatal(err)
	}
	if got.ID != id || got.Status != 0 || p.Method != mad.MethodGetResp || uint32(p.TransactionID) != 7 || info.NodeType != ib.NodeSwitch {
		t.Errorf("%+v brings %v with %v", got, p.Method, info)
	}
	if _, _, err := c.Receive(time.Second); !errors.Is(err, umad.ErrTimeout) {
		t.Errorf("nothing was sent, and %v", err)
	}
	before := h.Fabric.Now()
	if err := c.Send(header, request(t, 1, 200)); err != nil {
		t.Fatal(err)
	}
	if got, message, err = c.Receive(time.Second); err != nil || umad.Errno(got.Status) != umad.ETIMEDOUT || len(message) < mad.HeaderSize {
		t.Errorf("where nobody is: %+v, %d bytes, %v", got, len(message), err)
	}
	if took := h.Fabric.Now() - before; took < 50*time.Millisecond || took > time.Second {
		t.Errorf("the kernel gave up after %v, want 50 ms", took)
	}
	if err := c.Unregister(other); err != nil {
		t.Error(err)
	}
	if err := c.Unregister(other); err == nil {
		t.Error("an agent ends twice")
	}
	header.ID = other
	if err := c.Send(header, request(t, 1)); err == nil {
		t.Error("an agent that has ended sends")
	}
}

// Faults are errors and end nothing but what they are about.
func TestConnFaults(t *testing.T) {
	h, c := connect(t)
	if _, err := c.Register(umad.Registration{QPN: 5, Class: mad.ClassSubnDirected, ClassVersion: 1}); err == nil || !strings.Contains(err.Error(), "0x81") {
		t.Errorf("an agent of queue pair 5: %v", err)
	}
	if err := c.Send(umad.Header{ID: 31}, request(t)); err == nil {
		t.Error("an agent that never was sends")
	}
	id, err := c.Register(directed)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(umad.Header{ID: id}, make([]byte, umad.LeastMAD-1)); err == nil {
		t.Error("a datagram that is too short is sent")
	}
	h.Remove()
	if _, _, err := c.Receive(time.Second); err == nil || !umad.IsGone(err) {
		t.Errorf("of an adapter that is gone: %v", err)
	}
}

// A program asks the switch that its port is cabled to who it is. On a machine with
// an adapter, or inside `ibwarden sim exec`, it begins with umad.Open("/",
// umad.Place{}); here the file is that of a host of a simulated fabric.
func Example() {
	host, err := umadtest.New(topology.Demo(), "red-1")
	if err != nil {
		log.Fatal(err)
	}
	file, err := host.OpenMAD()
	if err != nil {
		log.Fatal(err)
	}
	c, err := umad.NewConn(file)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	id, err := c.Register(umad.Registration{Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion})
	if err != nil {
		log.Fatal(err)
	}
	ask := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion,
		Method: mad.MethodGet, AttributeID: smp.AttrNodeDescription, TransactionID: 1,
		HopCount: 1, InitialPath: [mad.PathSize]byte{1: 1}, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
	}
	bytes, err := ask.AppendBinary(nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := c.Send(umad.Header{ID: id, LID: ib.LIDPermissive, TimeoutMilliseconds: 200}, bytes); err != nil {
		log.Fatal(err)
	}
	_, bytes, err = c.Receive(time.Second)
	if err != nil {
		log.Fatal(err)
	}
	var answer mad.SMP
	if err := answer.UnmarshalBinary(bytes); err != nil {
		log.Fatal(err)
	}
	attribute, err := smp.Decode(answer.AttributeID, answer.Data[:])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(smp.AttributeName(answer.AttributeID), attribute)
	// Output: NodeDescription leaf-1
}
