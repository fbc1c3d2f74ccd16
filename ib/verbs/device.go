package verbs

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// DefaultSocket is the name of the simulator when neither the call nor the
// environment variable IBSIM_SOCKNAME names one.
const DefaultSocket = "sim"

// openTime is how long a simulator may take to open a device.
const openTime = 10 * time.Second

// SocketAddress is where the simulator of a name takes verbs calls: an abstract
// Unix socket, which leaves nothing behind.
func SocketAddress(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: "@ibwarden:verbs:" + name, Net: "unix"}
}

// Option is something that a program asks for when it opens a device.
type Option func(*Request)

// Privileged opens the device as privileged code does, which may use reserved
// Q_Keys. The simulator refuses it to users other than root.
func Privileged() Option { return func(r *Request) { r.Privileged = true } }

// Device is the opened device of a host.
type Device struct {
	connection net.Conn
	attr       DeviceAttr

	writing sync.Mutex
	mutex   sync.Mutex
	number  uint64
	waiting map[uint64]chan *Answer // by number; nil once the connection is gone
	gone    error
}

// Dial opens the device of a host of the fabric that `ibwarden sim --verbs
// --socket SOCKET` serves. An empty socket stands for the environment's
// IBSIM_SOCKNAME, or DefaultSocket; an empty node for the fabric's first CA. A
// program has what the simulator grants: one host for each Device.
func Dial(socket, node string, options ...Option) (*Device, error) {
	if socket == "" {
		socket = os.Getenv("IBSIM_SOCKNAME")
	}
	if socket == "" {
		socket = DefaultSocket
	}
	c, err := net.DialUnix("unix", nil, SocketAddress(socket))
	if err != nil {
		return nil, fmt.Errorf("no simulator named %q takes verbs calls: start ibwarden sim --socket %s --verbs: %w", socket, socket, err)
	}
	return Open(c, node, options...)
}

// Open is Dial over a connection to a simulator. The connection is the device's
// from now on.
func Open(c net.Conn, node string, options ...Option) (*Device, error) {
	d := &Device{connection: c, waiting: map[uint64]chan *Answer{}}
	r := Request{Call: CallOpen, Version: ProtocolVersion, Node: node}
	for _, o := range options {
		o(&r)
	}
	if err := d.open(&r); err != nil {
		c.Close()
		return nil, fmt.Errorf("open the device of %q: %w", node, err)
	}
	go d.read()
	return d, nil
}

func (d *Device) open(r *Request) error {
	if err := d.connection.SetDeadline(time.Now().Add(openTime)); err != nil {
		return err
	}
	// A simulator without room reports that before it reads anything.
	go func() { _ = WriteFrame(d.connection, r) }() // an error: no answer comes
	var a Answer
	if err := ReadFrame(d.connection, &a); err != nil {
		return err
	}
	if err := a.Err(); err != nil {
		return err
	}
	if a.Device == nil {
		return fmt.Errorf("an answer without a device: %w", ErrProtocol)
	}
	d.attr = *a.Device
	return d.connection.SetDeadline(time.Time{})
}

// read delivers answers to the waiting calls, until the connection ends.
func (d *Device) read() {
	for {
		a := new(Answer)
		err := ReadFrame(d.connection, a)
		d.mutex.Lock()
		if err != nil {
			if d.gone == nil {
				d.gone = fmt.Errorf("%w: the simulator has gone: %w", ErrClosed, err)
			}
			for _, c := range d.waiting {
				close(c)
			}
			d.waiting = nil
			d.mutex.Unlock()
			d.connection.Close()
			return
		}
		c := d.waiting[a.Number]
		delete(d.waiting, a.Number)
		d.mutex.Unlock()
		if c != nil {
			c <- a
		}
	}
}

// call asks the simulator and waits for its answer.
func (d *Device) call(r Request) (*Answer, error) {
	answer := make(chan *Answer, 1)
	d.mutex.Lock()
	if d.gone != nil {
		d.mutex.Unlock()
		return nil, d.gone
	}
	d.number++
	r.Number = d.number
	d.waiting[r.Number] = answer
	d.mutex.Unlock()
	d.writing.Lock()
	err := WriteFrame(d.connection, &r)
	d.writing.Unlock()
	if err != nil {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		delete(d.waiting, r.Number)
		if d.gone != nil {
			err = d.gone
		}
		return nil, fmt.Errorf("%s: %w", r.Call, err)
	}
	a, ok := <-answer
	if !ok {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		return nil, fmt.Errorf("%s: %w", r.Call, d.gone)
	}
	return a, a.Err()
}

// Close gives the device back, with all that was made with it.
func (d *Device) Close() error {
	d.mutex.Lock()
	if d.gone == nil {
		d.gone = ErrClosed
	}
	d.mutex.Unlock()
	return d.connection.Close()
}

// Query describes the device.
func (d *Device) Query() DeviceAttr { return d.attr }

// QueryPort describes port n. It returns ErrPort if there is none.
func (d *Device) QueryPort(n ib.PortNum) (PortAttr, error) {
	a, err := d.call(Request{Call: CallQueryPort, Port: n})
	if err != nil {
		return PortAttr{}, err
	}
	if a.Port == nil {
		return PortAttr{}, fmt.Errorf("query port: an answer without a port: %w", ErrProtocol)
	}
	return *a.Port, nil
}

// QueryPKey reads entry i of port n's P_Key table. An empty entry is no error: its
// key is not valid. It returns ErrPKeyIndex if the table is shorter.
func (d *Device) QueryPKey(n ib.PortNum, i int) (ib.PKey, error) {
	a, err := d.call(Request{Call: CallQueryPKey, Port: n, Index: i})
	if err != nil {
		return 0, err
	}
	return a.PKey, nil
}

// QueryGID reads entry i of port n's GID table.
func (d *Device) QueryGID(n ib.PortNum, i int) (ib.GID, error) {
	a, err := d.call(Request{Call: CallQueryGID, Port: n, Index: i})
	if err != nil {
		return ib.GID{}, err
	}
	if a.GID == nil {
		return ib.GID{}, fmt.Errorf("query GID: an answer without a GID: %w", ErrProtocol)
	}
	return *a.GID, nil
}

// NextEvent takes the oldest asynchronous event that was not taken yet; false for
// none. Every opened device of a host gets the events of its ports.
func (d *Device) NextEvent() (Event, bool, error) { return d.WaitEvent(0) }

// WaitEvent is NextEvent after waiting for one, no longer than limit. The time is
// the clock's on a served fabric, and the fabric's own on one inside the program.
func (d *Device) WaitEvent(limit time.Duration) (Event, bool, error) {
	a, err := d.call(Request{Call: CallNextEvent, Wait: int64(limit)})
	if err != nil || a.Event == nil {
		return Event{}, false, err
	}
	return *a.Event, true, nil
}
