package plug

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Limits of a server.
const (
	DevicesMax = 64 // plugged in at one time
	// NameTime is how long a connection may take to say whose place it takes, WriteTime how long to take a
	// message.
	NameTime  = 10 * time.Second
	WriteTime = 10 * time.Second
	// queueMax is how many messages may wait to be taken; packets beyond that are lost.
	queueMax = 4096
)

// Simulator is what serves the fabric.
type Simulator interface {
	// Do calls something when the fabric may be used, and waits for its end.
	Do(func(*fabric.Fabric)) error
	Topology() *topology.Netlist
}

// Server has the devices of a simulator.
type Server struct {
	// Users are those who may use the fabric. It is set before Serve.
	Users door.Users

	simulator Simulator
	places    chan struct{} // one for each device
}

// New makes a server for a simulator.
func New(s Simulator) *Server { return &Server{simulator: s, places: make(chan struct{}, DevicesMax)} }

func address(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: "@ibwarden:plug:" + name, Net: "unix"}
}

// Listen opens the socket for the simulator of a name.
func Listen(name string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", address(name))
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("%s: another simulator of this name takes devices", name)
	}
	return l, err
}

// Serve takes devices until the context ends. When it returns all are gone, and their hosts are back.
func (s *Server) Serve(ctx context.Context, l *net.UnixListener) error {
	ctx, end := context.WithCancel(ctx)
	var served sync.WaitGroup
	defer served.Wait()
	defer end()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.AcceptUnix()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("waiting for devices: %w", err)
		}
		served.Go(func() {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			if err := s.serve(c); err != nil {
				_ = c.SetWriteDeadline(time.Now().Add(WriteTime))
				_ = writeMessage(c, kindRefuse, fmt.Append(nil, err)) // it is told, if it listens
			}
		})
	}
}

// serve serves one connection. An error is why it has no place, or has it no more.
func (s *Server) serve(c *net.UnixConn) error {
	uid, err := door.Peer(c)
	if err == nil {
		err = s.Users.Admit(uid)
	}
	if err != nil {
		return err
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	default:
		return fmt.Errorf("%d devices are plugged in already", DevicesMax)
	}
	in := bufio.NewReader(c)
	var buf [messageMax]byte
	if err := c.SetReadDeadline(time.Now().Add(NameTime)); err != nil {
		return err
	}
	kind, name, err := readMessage(in, &buf)
	if err != nil {
		return err
	}
	if kind != kindName {
		return fmt.Errorf("the first message is of kind %q, want the name of a node (%q)", kind, kindName)
	}
	n, err := s.simulator.Topology().Find(string(name))
	if err != nil {
		return err
	}
	d := &device{out: make(chan message, queueMax)}
	if err := s.do(func(f *fabric.Fabric) error { d.plug, err = f.Plug(n.GUID, d); return err }); err != nil {
		return err
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	defer func() {
		_ = s.do(func(*fabric.Fabric) error { return d.plug.Unplug() }) // an error: the simulator has ended
		close(d.out)
	}()
	guids := binary.BigEndian.AppendUint64(nil, uint64(n.GUID))
	guids = binary.BigEndian.AppendUint64(guids, uint64(n.Ports[1].GUID))
	d.queue(kindGUIDs, append(guids, n.Description...))
	writing.Go(func() { d.write(c) })
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	for {
		kind, body, err := readMessage(in, &buf)
		if err != nil {
			return nil // it has gone
		}
		if err := s.do(func(*fabric.Fabric) error { return d.obey(kind, body) }); err != nil {
			return err
		}
	}
}

// do does something with the fabric.
func (s *Server) do(call func(*fabric.Fabric) error) (err error) {
	if ended := s.simulator.Do(func(f *fabric.Fabric) { err = call(f) }); ended != nil {
		return ended
	}
	return err
}

type message struct {
	kind byte
	body []byte
}

// device is the fabric's view of a program: what the cable brings waits until it is taken.
type device struct {
	plug *fabric.Plug
	out  chan message
}

// stateRoom is how many messages may wait beside packets: the state of the link is not lost for them.
const stateRoom = 64

// queue has a message written. One for which there is no room is lost: who does not read holds up nobody.
func (d *device) queue(kind byte, body []byte) {
	if kind == kindPacket && len(d.out) >= queueMax-stateRoom {
		return
	}
	select {
	case d.out <- message{kind, body}:
	default:
	}
}

// write writes messages until there are no more, or nobody takes them.
func (d *device) write(c net.Conn) {
	w := bufio.NewWriter(c)
	for m := range d.out {
		if c.SetWriteDeadline(time.Now().Add(WriteTime)) != nil || writeMessage(w, m.kind, m.body) != nil || len(d.out) == 0 && w.Flush() != nil {
			c.Close() // the reader ends too
			for range d.out {
			}
			return
		}
	}
}

// obey does what a message says.
func (d *device) obey(kind byte, body []byte) error {
	switch {
	case kind == kindPacket:
		return d.plug.Send(body)
	case kind == kindPoll && len(body) == 3 && body[0] <= 1:
		d.plug.Poll(body[0] == 1, smp.LinkWidth(body[1]), smp.LinkSpeed(body[2]))
		return nil
	}
	return fmt.Errorf("a message of kind %q and %d bytes, want a packet (%q), or 3 bytes of the port's state (%q)", kind, len(body), kindPacket, kindPoll)
}

// LinkUp, LinkDown and Receive are what the cable brings (fabric.Outside).
func (d *device) LinkUp(l sma.Link) { d.queue(kindUp, link(l.Width, l.Speed)) }

// LinkDown says that the other end is lost.
func (d *device) LinkDown() { d.queue(kindDown, nil) }

// Receive takes a packet.
func (d *device) Receive(bytes []byte) { d.queue(kindPacket, append([]byte(nil), bytes...)) }
