package umad

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// File is an open umad file.
type File interface {
	io.ReadWriteCloser
	// Ioctl carries out a command on an argument, which it may change; nil for
	// a command without one.
	Ioctl(command uint32, argument []byte) error
	// Wait waits until there is something to read or time is up. The error is
	// EIO when the device is gone.
	Wait(d time.Duration) (readable bool, err error)
}

// Waker is a File whose Wait any goroutine can end before its time: the one under way, or
// the next. Wait then reports that there is nothing to read, unless there is.
type Waker interface{ Wake() }

// MaxMessage bounds what Receive takes, in bytes without the header: a message of
// many segments is longer than any that the kernel should hand on.
const MaxMessage = 1 << 20

// ErrTimeout means that nothing arrived in time.
var ErrTimeout = errors.New("nothing came in time")

// Conn is an open umad file with the longer header. One goroutine may use it.
type Conn struct {
	file   File
	buffer []byte
}

// Open opens the umad file of a port of this machine, or of another whose /sys and
// /dev are below root, "/" usually. The error says what is missing.
func Open(root string, at Place) (*Conn, Port, error) {
	devices, err := Devices(root)
	if err != nil {
		return nil, Port{}, err
	}
	port, err := Choose(devices, at)
	if err != nil {
		return nil, Port{}, err
	}
	file, err := OpenFile(root, port.MAD)
	if err != nil {
		return nil, Port{}, Explain(port.MAD, err)
	}
	c, err := NewConn(file)
	if err != nil {
		return nil, Port{}, Explain(port.MAD, err)
	}
	return c, port, nil
}

// NewConn takes an open file and asks for the longer header. It closes the file when
// that fails.
func NewConn(f File) (*Conn, error) {
	if err := f.Ioctl(CommandEnablePKey, nil); err != nil {
		f.Close()
		return nil, err
	}
	return &Conn{file: f, buffer: make([]byte, HeaderSize+mad.Size)}, nil
}

// Close gives the file and all its agents back.
func (c *Conn) Close() error { return c.file.Close() }

// Register makes an agent and gives its number. An agent gets the answers to what is
// sent by it, and the requests of its class that have one of its methods.
func (c *Conn) Register(r Registration) (id uint32, err error) {
	argument := r.Encode()
	if err := c.file.Ioctl(CommandRegister, argument); err != nil {
		return 0, fmt.Errorf("registering for class 0x%02x: %w", uint8(r.Class), err)
	}
	r, err = ReadRegistration(CommandRegister, argument)
	return r.ID, err
}

// Unregister ends an agent.
func (c *Conn) Unregister(id uint32) error { return c.file.Ioctl(CommandUnregister, EncodeID(id)) }

// Send sends a datagram by the agent h.ID. With h.TimeoutMilliseconds an answer is
// waited for: Receive gives it, or the first mad.HeaderSize bytes of the datagram itself
// with h.Status ETIMEDOUT. The upper half of a request's transaction identifier is the kernel's.
func (c *Conn) Send(h Header, datagram []byte) error {
	b := make([]byte, HeaderSize, HeaderSize+len(datagram))
	h.Put(b, true)
	_, err := c.file.Write(append(b, datagram...))
	return err
}

// Receive waits up to d for a datagram or for a message of several segments, which is
// its own until the next call. The error is ErrTimeout when nothing came.
func (c *Conn) Receive(d time.Duration) (Header, []byte, error) {
	readable, err := c.file.Wait(d)
	if err != nil {
		return Header{}, nil, err
	}
	if !readable {
		return Header{}, nil, fmt.Errorf("%w: %v", ErrTimeout, d)
	}
	for {
		n, err := c.file.Read(c.buffer)
		switch {
		case errors.Is(err, syscall.ENOSPC) && n == 0 && len(c.buffer) < HeaderSize+MaxMessage:
			c.buffer = make([]byte, HeaderSize+MaxMessage) // the kernel keeps what has no room
			continue
		case errors.Is(err, syscall.EAGAIN):
			return Header{}, nil, fmt.Errorf("%w: %v", ErrTimeout, d)
		case err != nil:
			return Header{}, nil, err
		}
		h, err := ReadHeader(c.buffer[:n], true)
		if err != nil {
			return Header{}, nil, err
		}
		return h, c.buffer[HeaderSize:n], nil
	}
}
