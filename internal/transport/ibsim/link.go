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

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/transact"
	"github.com/ibwarden/ibwarden/internal/transport"
)

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

// Unacknowledged: the simulator's other clients know nothing of long messages.
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

// Close leaves the simulator, which keeps the place for somebody else.
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
	_ transport.Link           = (*Link)(nil)
	_ transport.Unacknowledged = (*Link)(nil)
)

// longestNap bounds one wait for a packet, so that the end of a context is
// noticed soon.
const longestNap = 100 * time.Millisecond

// Drive moves packets between the engine and the simulator.
func (l *Link) Drive(ctx context.Context, e transport.Engine, done func() bool) error {
	raw, err := l.data.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	p := pump{link: l, engine: e, raw: raw}
	p.general, _ = e.(transport.General)
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

var _ transport.Waker = (*Link)(nil)

// Wake ends a wait of Drive's, as transport.Waker says.
func (l *Link) Wake() { _ = l.data.SetReadDeadline(time.Now()) }

func (l *Link) now() time.Duration { return time.Since(l.origin) }

type pump struct {
	link    *Link
	engine  transport.Engine
	general transport.General // the engine, if it is one
	raw     syscall.RawConn
	smp     mad.SMP
	buf     [packetSize + 1]byte
	waking  time.Time // the read deadline that is set
	started bool
}

func (p *pump) sendAll() error {
	for {
		some, err := p.next()
		if err != nil || !some {
			return err
		}
		if _, err := p.link.data.Write(p.buf[:packetSize]); err != nil {
			return err
		}
	}
}

// next puts the next packet into the buffer.
func (p *pump) next() (some bool, err error) {
	now := p.link.now()
	octets := (*[mad.Size]byte)(p.buf[packetHeader:])
	if dlid, ok := p.engine.Next(now, &p.smp); ok {
		putPacketHeader(p.buf[:], dlid)
		return true, p.smp.Encode(octets)
	}
	if p.general == nil {
		return false, nil
	}
	to, ok := p.general.NextGeneral(now, octets)
	if ok {
		putPacketHeader(p.buf[:], to.LID)
		putQueuePairs(p.buf[:], to)
		putGeneralLength(p.buf[:])
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
	n, err := p.link.data.Read(p.buf[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.started = false
		return nil
	}
	if err != nil {
		return err
	}
	p.take(n, false)
	err = p.raw.Read(func(fd uintptr) bool {
		for {
			n, err := syscall.Read(int(fd), p.buf[:])
			if err != nil {
				return true // nothing more to read; a real error shows at the next wait
			}
			p.take(n, false)
			if !p.sendWaiting(int(fd)) {
				return true
			}
		}
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.started = false
		return nil
	}
	return err
}

// sendWaiting answers a packet with the next one, while both are at hand.
func (p *pump) sendWaiting(fd int) bool {
	for {
		some, err := p.next()
		if !some {
			return true
		}
		if err != nil {
			return false
		}
		if _, err := syscall.Write(fd, p.buf[:packetSize]); err != nil {
			// Taken for lost: the engine sends it again.
			p.take(packetSize, true)
			return false
		}
	}
}

// take hands a packet to the engine. A request that nobody answered, by its
// status or because it is lost, goes back to it.
func (p *pump) take(n int, lost bool) {
	if n != packetSize {
		return
	}
	now := p.link.now()
	lost = lost || packetStatus(p.buf[:]) == statusNoAnswer
	if p.smp.UnmarshalBinary(p.buf[packetHeader:packetSize]) != nil {
		p.takeGeneral(now, lost)
		return
	}
	if lost {
		if !p.smp.Method.IsResponse() {
			p.engine.Lost(now, &p.smp)
		}
		return
	}
	p.engine.Receive(now, &p.smp, packetSource(p.buf[:]))
}

// offMethod is the place of the method in a datagram.
const offMethod = 3

// takeGeneral hands on a general management datagram.
func (p *pump) takeGeneral(now time.Duration, lost bool) {
	if p.general == nil {
		return
	}
	octets := (*[mad.Size]byte)(p.buf[packetHeader:])
	if !lost {
		p.general.ReceiveGeneral(now, octets, mad.Address{LID: packetSource(p.buf[:]), QP: packetQueuePair(p.buf[:])})
		return
	}
	if !mad.Method(octets[offMethod]).IsResponse() {
		p.general.LostGeneral(now, octets)
	}
}
