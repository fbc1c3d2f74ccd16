package ibsimd_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// The kinds of control requests.
const (
	ctlError = iota
	ctlConnect
	ctlDisconnect
	ctlGetPort
	ctlGetVendor
	ctlGetGID
	ctlGetGUID
	ctlGetNodeInfo
	ctlGetPortInfo
	ctlSetIsSM
	ctlGetPKeys
)

const (
	answerWait  = 5 * time.Second        // for what has to come
	silenceWait = 150 * time.Millisecond // for what must not come
)

// rawClient speaks the protocol byte by byte.
type rawClient struct {
	testing.TB
	server    string
	id        uint32
	slot      uint32
	ctl, data *net.UnixConn
}

var clientIDs atomic.Uint32

// sockets are those of a client that has said nothing yet.
func sockets(t testing.TB, server string) *rawClient {
	t.Helper()
	c := &rawClient{TB: t, server: server, id: uint32(os.Getpid()) + clientIDs.Add(1)<<22}
	var err error
	if c.data, err = net.ListenUnixgram("unixgram", abstract(server, fmt.Sprintf("in%d", c.id))); err != nil {
		t.Fatal(err)
	}
	if c.ctl, err = net.DialUnix("unixgram", abstract(server, fmt.Sprintf("ctl%d", c.id)), abstract(server, "ctl")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.die)
	return c
}

func abstract(server, name string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unixgram", Name: "@" + server + ":" + name + "\x00"}
}

// die leaves without a word.
func (c *rawClient) die() {
	c.ctl.Close()
	c.data.Close()
}

// attach connects a client to a node.
func attach(t testing.TB, server, host string) *rawClient {
	t.Helper()
	c := sockets(t, server)
	if kind, _ := c.connect(host, false); kind != ctlConnect {
		t.Fatalf("connecting at %q: answer %d", host, kind)
	}
	return c
}

// connect asks for a place and, given one, connects the data socket.
func (c *rawClient) connect(host string, isSM bool) (kind uint32, node string) {
	c.Helper()
	payload := make([]byte, 44)
	binary.NativeEndian.PutUint32(payload, c.id)
	if isSM {
		binary.NativeEndian.PutUint32(payload[8:], 1)
	}
	copy(payload[12:43], host)
	kind, answer := c.ask(ctlConnect, payload)
	if kind != ctlConnect {
		return kind, ""
	}
	c.slot = binary.NativeEndian.Uint32(answer)
	raw, err := c.data.SyscallConn()
	if err != nil {
		c.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		err = syscall.Connect(int(fd), &syscall.SockaddrUnix{Name: abstract(c.server, fmt.Sprintf("out%d", c.slot)).Name})
	}); err != nil {
		c.Fatal(err)
	}
	if err != nil {
		c.Fatalf("data socket %d: %v", c.slot, err)
	}
	name, _, _ := strings.Cut(string(answer[12:44]), "\x00")
	return kind, name
}

// ask makes a control request and waits for its answer.
func (c *rawClient) ask(kind uint32, payload []byte) (uint32, []byte) {
	c.Helper()
	return c.askAs(c.slot, kind, payload)
}

func (c *rawClient) askAs(slot, kind uint32, payload []byte) (uint32, []byte) {
	c.Helper()
	b := make([]byte, 80)
	binary.NativeEndian.PutUint32(b[0:], 0xDEADBEEF)
	binary.NativeEndian.PutUint32(b[4:], slot)
	binary.NativeEndian.PutUint32(b[8:], kind)
	binary.NativeEndian.PutUint32(b[12:], uint32(len(payload)))
	copy(b[16:], payload)
	return c.askRaw(b)
}

func (c *rawClient) askRaw(b []byte) (uint32, []byte) {
	c.Helper()
	c.ctl.SetDeadline(time.Now().Add(answerWait))
	if _, err := c.ctl.Write(b); err != nil {
		c.Fatalf("control request: %v", err)
	}
	answer := make([]byte, 100)
	n, err := c.ctl.Read(answer)
	if err != nil || n != 80 {
		c.Fatalf("control request % x: answer of %d bytes, %v", b[:min(len(b), 16)], n, err)
	}
	return binary.NativeEndian.Uint32(answer[8:]), answer[16:80]
}

// isSM says whether the client is a subnet manager.
func (c *rawClient) isSM(on byte) uint32 {
	c.Helper()
	kind, _ := c.ask(ctlSetIsSM, []byte{on, 0, 0, 0})
	return kind
}

// datagram is one on the data socket.
type datagram struct {
	dlid, slid uint16
	dqp, sqp   uint32
	status     uint32
	mad        [mad.Size]byte
}

func (d *datagram) bytes() []byte {
	b := make([]byte, 288)
	binary.BigEndian.PutUint16(b[0:], d.dlid)
	binary.BigEndian.PutUint16(b[4:], d.slid)
	binary.BigEndian.PutUint32(b[8:], d.dqp)
	binary.BigEndian.PutUint32(b[12:], d.sqp)
	copy(b[20:24], "\x20\x7f\x00\x00") // as libumad2sim leaves it
	binary.BigEndian.PutUint64(b[24:], mad.Size)
	copy(b[32:], d.mad[:])
	return b
}

// String shows what matters.
func (d *datagram) String() string {
	if d == nil {
		return "nothing"
	}
	return fmt.Sprintf("from %d to %d, QPs %d and %d, status %d: % x", d.slid, d.dlid, d.sqp, d.dqp, d.status, d.mad[:32])
}

// tidEnd is the last byte of the transaction ID.
const tidEnd = 15

func (d *datagram) tid() uint64 { return binary.BigEndian.Uint64(d.mad[8:]) }

// send sends a datagram, and waits until there is room.
func (c *rawClient) send(d datagram) {
	c.Helper()
	c.data.SetWriteDeadline(time.Now().Add(answerWait))
	if _, err := c.data.Write(d.bytes()); err != nil {
		c.Fatalf("data: %v", err)
	}
}

// receive waits for a datagram; nil when none comes.
func (c *rawClient) receive(wait time.Duration) *datagram {
	c.Helper()
	b := make([]byte, 400)
	c.data.SetReadDeadline(time.Now().Add(wait))
	n, err := c.data.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	if err != nil || n != 288 {
		c.Fatalf("data: %d bytes, %v", n, err)
	}
	return &datagram{
		dlid: binary.BigEndian.Uint16(b[0:]), slid: binary.BigEndian.Uint16(b[4:]),
		dqp: binary.BigEndian.Uint32(b[8:]), sqp: binary.BigEndian.Uint32(b[12:]),
		status: binary.BigEndian.Uint32(b[16:]), mad: [mad.Size]byte(b[32:]),
	}
}

// receiveBut waits for a datagram of any other method.
func (c *rawClient) receiveBut(method byte) *datagram {
	c.Helper()
	for {
		if d := c.receive(answerWait); d == nil || d.mad[3] != method {
			return d
		}
	}
}

// query sends a datagram and waits for what comes back.
func (c *rawClient) query(d datagram) *datagram {
	c.Helper()
	c.send(d)
	r := c.receiveBut(byte(mad.MethodTrap))
	if r == nil {
		c.Fatal("no answer, and the request did not come back")
	}
	if r.tid() != d.tid() {
		c.Fatalf("answer with transaction %x, asked %x", r.tid(), d.tid())
	}
	return r
}

// directed is a request along a directed route.
func directed(tid uint64, method mad.Method, attribute mad.AttributeID, modifier uint32, path ...byte) datagram {
	d := datagram{dlid: 0xFFFF, slid: 0xFFFF}
	m := &d.mad
	m[0], m[1], m[2], m[3] = 1, 0x81, 1, byte(method)
	m[7] = byte(len(path))
	binary.BigEndian.PutUint64(m[8:], tid)
	binary.BigEndian.PutUint16(m[16:], uint16(attribute))
	binary.BigEndian.PutUint32(m[20:], modifier)
	copy(m[32:], "\xff\xff\xff\xff")
	copy(m[129:], path)
	return d
}

// general is a general management datagram.
func general(tid uint64, class mad.Class, method mad.Method, attribute mad.AttributeID, dlid uint16) datagram {
	d := datagram{dlid: dlid, dqp: 1, sqp: 1}
	m := &d.mad
	m[0], m[1], m[2], m[3] = 1, byte(class), 1, byte(method)
	if class == mad.ClassSubnAdm {
		m[2] = 2
	}
	binary.BigEndian.PutUint64(m[8:], tid)
	binary.BigEndian.PutUint16(m[16:], uint16(attribute))
	return d
}

// byLID is a LID-routed subnet-management request.
func byLID(tid uint64, method mad.Method, attribute mad.AttributeID, dlid uint16) datagram {
	d := general(tid, mad.ClassSubnLID, method, attribute, dlid)
	d.dqp, d.sqp = 0, 0
	return d
}

// small is a switch with three hosts; the first is where clients attach that
// name no node. "two" has two ports.
func small(t testing.TB) *topology.Netlist {
	t.Helper()
	return topologyOf(t, `Hca 1 "one" # "host one"
[1] "sw"[1]

Switch 4 "sw" # "the switch"
[1] "one"[1]
[2] "two"[1]
[3] "three"[1]
[4] "two"[2]

Hca 2 "two"
[1] "sw"[2]
[2] "sw"[4]

Hca 1 "three"
[1] "sw"[3]
`)
}

// nodeInfo is the question that is always answered.
func nodeInfo(tid uint64, path ...byte) datagram {
	return directed(tid, mad.MethodGet, smp.AttrNodeInfo, 0, path...)
}

// alive checks that a server answers a client.
func (c *rawClient) alive() {
	c.Helper()
	tid := uint64(c.id)<<32 | 0xA11E
	if r := c.query(nodeInfo(tid)); r.status != 0 || r.mad[3] != 0x81 || r.mad[4] != 0x80 {
		c.Fatalf("NodeInfo of the node itself: status %d, % x", r.status, r.mad[:80])
	}
}
