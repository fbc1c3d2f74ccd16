package ibsim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// batchSize is how many packets one system call moves at most: most of what a
// packet costs is the way into the kernel and back.
const batchSize = 32

// Link is a place at one node of a simulator. One goroutine may use it.
type Link struct {
	control net.Conn
	data    net.Conn
	server  *net.UDPAddr // nil for a local simulator
	id      uint32       // in the names of our sockets
	client  uint32       // our number at the simulator
	node    string
	origin  time.Time
}

// Own is the node that the simulator says that the link is attached to.
func (l *Link) Own() (ib.NodeGUID, ib.PortGUID) {
	var info smp.NodeInfo
	answer, err := l.ask(control{kind: controlNodeInfo})
	if err != nil || info.UnmarshalBinary(answer.payload) != nil {
		return 0, 0
	}
	return info.NodeGUID, 0 // ibsim tells no port GUID
}

// Node is the name of the node that the link is attached to.
func (l *Link) Node() string { return l.node }

// windowLimit keeps the packets under way below what fits a socket buffer:
// ibsim retries a full one in a busy loop, and never comes back to reading.
const windowLimit = 128

// Limits are those of a simulator that answers in microseconds and says at
// once when nobody answers.
func (l *Link) Limits() transact.Limits {
	limits := transact.DefaultLimits()
	limits.Window = windowLimit
	limits.FirstTimeout = time.Second // the simulator may be busy with another client
	limits.MinTimeout = 500 * time.Millisecond
	limits.Tries = 4
	return limits
}

// Unacknowledged reports that the simulator's other clients know nothing of long messages; programs in
// ibwarden sim exec do.
func (l *Link) Unacknowledged() {}

// SetIsSM tells the simulator whether a subnet manager lives here: it then
// forwards traps and SMInfo to this link.
func (l *Link) SetIsSM(on bool) error {
	payload := make([]byte, 4)
	if on {
		binary.NativeEndian.PutUint32(payload, 1)
	}
	_, err := l.ask(control{kind: controlSetIsSM, payload: payload})
	if err != nil {
		return fmt.Errorf("ibsim: setting IsSM at %s: %w", l.node, err)
	}
	return nil
}

// Close leaves the simulator, which frees the slot for another client.
func (l *Link) Close() error {
	_, err := l.ask(control{kind: controlDisconnect})
	l.closeSockets()
	return err
}

func (l *Link) closeSockets() {
	for _, c := range []net.Conn{l.data, l.control} {
		if c != nil {
			c.Close()
		}
	}
}

var (
	_ link.Link           = (*Link)(nil)
	_ link.Unacknowledged = (*Link)(nil)
)

// longestNap bounds one wait for a packet, so that the end of a context is
// noticed soon.
const longestNap = 100 * time.Millisecond

// batchesMax is how many batches are taken in before the engine's clock and the
// context are looked at again.
const batchesMax = 64

// Drive moves packets between the engine and the simulator.
func (l *Link) Drive(ctx context.Context, e link.Engine, done func() bool) error {
	raw, err := l.data.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	p := pump{link: l, engine: e, raw: raw, in: newBatch(), out: newBatch()}
	p.general, _ = e.(link.General)
	for !done() {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.Expire(l.now()) // of what done has done to the engine too
		if err := p.sendAll(); err != nil {
			return fmt.Errorf("ibsim: sending: %w", err)
		}
		if err := p.receive(); err != nil {
			return fmt.Errorf("ibsim: receiving: %w", err)
		}
	}
	return nil
}

var _ link.Waker = (*Link)(nil)

// Wake ends a wait of Drive's, as link.Waker says.
func (l *Link) Wake() { _ = l.data.SetReadDeadline(time.Now()) }

func (l *Link) now() time.Duration { return time.Since(l.origin) }

type pump struct {
	link    *Link
	engine  link.Engine
	general link.General // the engine, if it is one
	raw     syscall.RawConn
	smp     mad.SMP
	buf     [packetSize]byte
	in, out *batch
	waking  time.Time // the read deadline that is set
	started bool
}

func (p *pump) sendAll() error {
	for {
		some, err := p.next(p.buf[:])
		if err != nil || !some {
			return err
		}
		if _, err := p.link.data.Write(p.buf[:packetSize]); err != nil {
			return err
		}
	}
}

// next puts the next packet into a buffer.
func (p *pump) next(b []byte) (some bool, err error) {
	now := p.link.now()
	bytes := (*[mad.Size]byte)(b[packetHeader:])
	if dlid, ok := p.engine.Next(now, &p.smp); ok {
		putPacketHeader(b, dlid)
		return true, p.smp.Encode(bytes)
	}
	if p.general == nil {
		return false, nil
	}
	to, ok := p.general.NextGeneral(now, bytes)
	if ok {
		putPacketHeader(b, to.LID)
		putQueuePairs(b, to)
		putGeneralLength(b)
	}
	return ok, nil
}

// receive waits for a packet, until the engine's deadline at the latest, and
// takes in all that have arrived.
func (p *pump) receive() error {
	now := time.Now()
	nap := longestNap
	if due, ok := p.engine.Deadline(); ok {
		nap = min(max(due-p.link.now(), time.Millisecond), longestNap)
	}
	// Moving the deadline costs more than a packet: it may be up to one nap late.
	if wake := now.Add(nap); p.waking.Before(now) || wake.Before(p.waking) || !p.started {
		p.waking, p.started = wake, true
		if err := p.link.data.SetReadDeadline(wake); err != nil {
			return err
		}
	}
	var fault error
	some := false
	err := p.raw.Read(func(fd uintptr) bool {
		for range batchesMax {
			n, err := p.in.receive(fd)
			if errors.Is(err, syscall.EAGAIN) {
				return some // else wait
			}
			if err != nil {
				fault = err
				return true
			}
			some = true
			for i := range n {
				p.take(p.in.packets[i][:p.in.messages[i].bytes], false)
			}
			if !p.sendWaiting(fd) {
				return true
			}
			if n < batchSize {
				// Let the goroutine that sends the next packets run first: waking up for
				// each of them costs more than processing them.
				yield()
			}
		}
		return true
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.started = false
		return nil
	}
	if err == nil {
		err = fault
	}
	return err
}

// sendWaiting answers what has come, as long as the simulator takes it.
func (p *pump) sendWaiting(fd uintptr) bool {
	for {
		n := 0
		for ; n < batchSize; n++ {
			some, err := p.next(p.out.packets[n][:])
			if err != nil {
				return false
			}
			if !some {
				break
			}
		}
		if n == 0 {
			return true
		}
		sent, err := p.out.send(fd, n)
		for i := sent; i < n; i++ {
			// Taken for lost: the engine sends it again.
			p.take(p.out.packets[i][:packetSize], true)
		}
		if err != nil || sent < n {
			return false
		}
	}
}

// take hands a packet to the engine. A request that nobody answered, by its
// status or because it is lost, goes back to it.
func (p *pump) take(b []byte, lost bool) {
	if len(b) != packetSize {
		return
	}
	now := p.link.now()
	lost = lost || packetStatus(b) == statusNoAnswer
	if class := mad.Class(b[packetHeader+1]); class != mad.ClassSubnDirected && class != mad.ClassSubnLID {
		p.takeGeneral(now, b, lost)
		return
	}
	if p.smp.UnmarshalBinary(b[packetHeader:]) != nil {
		return
	}
	if lost {
		if !p.smp.Method.IsResponse() {
			p.engine.Lost(now, &p.smp)
		}
		return
	}
	p.engine.Receive(now, &p.smp, packetSource(b))
}

// takeGeneral hands on a general management datagram.
func (p *pump) takeGeneral(now time.Duration, b []byte, lost bool) {
	if p.general == nil {
		return
	}
	bytes := (*[mad.Size]byte)(b[packetHeader:])
	if !lost {
		p.general.ReceiveGeneral(now, bytes, mad.Address{LID: packetSource(b), QP: packetQueuePair(b)})
		return
	}
	if !mad.Method(bytes[mad.OffsetMethod]).IsResponse() {
		p.general.LostGeneral(now, bytes)
	}
}
