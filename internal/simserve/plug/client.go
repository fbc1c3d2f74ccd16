package plug

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Device is a program's place in a served fabric.
type Device struct {
	Node        ib.NodeGUID
	Port        ib.PortGUID
	Description string

	conn    net.Conn
	in      *bufio.Reader
	buf     [messageMax]byte
	writing sync.Mutex
}

// Cable is what is at the program's end. Its methods are called one at a time.
type Cable interface {
	LinkUp(smp.LinkWidth, smp.LinkSpeed)
	LinkDown()
	// Receive takes a packet, LRH to VCRC; bytes are valid until it returns.
	Receive(bytes []byte)
}

// Dial takes the place of a node of the fabric that the simulator of a name serves.
func Dial(name, node string) (*Device, error) {
	c, err := net.DialUnix("unix", nil, address(name))
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, fmt.Errorf("no fabric is served under the name %q: start one with ibwarden sim --socket %s", name, name)
	}
	if err != nil {
		return nil, err
	}
	d := &Device{conn: c, in: bufio.NewReader(c)}
	if err := d.enter(node); err != nil {
		c.Close()
		return nil, err
	}
	return d, nil
}

func (d *Device) enter(node string) error {
	sent := d.write(kindName, []byte(node)) // who is refused at the door cannot even say this
	kind, body, err := readMessage(d.in, &d.buf)
	switch {
	case err != nil:
		return fmt.Errorf("the simulator does not answer: %w", errors.Join(sent, err))
	case kind == kindRefuse:
		return errors.New(string(body))
	case kind != kindGUIDs || len(body) < 16:
		return fmt.Errorf("the simulator answers with a message of kind %q and %d bytes, want the GUIDs of the node", kind, len(body))
	}
	d.Node, d.Port = ib.NodeGUID(binary.BigEndian.Uint64(body)), ib.PortGUID(binary.BigEndian.Uint64(body[8:]))
	d.Description = string(body[16:])
	return nil
}

// Run brings what comes from the fabric to the program's end of the cable, until the fabric ends or
// Close is called.
func (d *Device) Run(c Cable) error {
	for {
		kind, body, err := readMessage(d.in, &d.buf)
		switch {
		case err != nil:
			return err
		case kind == kindPacket:
			c.Receive(body)
		case kind == kindUp && len(body) == 2:
			c.LinkUp(smp.LinkWidth(body[0]), smp.LinkSpeed(body[1]))
		case kind == kindDown:
			c.LinkDown()
		case kind == kindRefuse:
			return errors.New(string(body))
		default:
			return fmt.Errorf("the simulator sends a message of kind %q and %d bytes", kind, len(body))
		}
	}
}

// Send sends a packet, LRH to VCRC.
func (d *Device) Send(bytes []byte) error { return d.write(kindPacket, bytes) }

// Poll says whether the port looks for a peer, and with which widths and speeds.
func (d *Device) Poll(on bool, w smp.LinkWidth, s smp.LinkSpeed) error {
	body := append([]byte{0}, link(w, s)...)
	if on {
		body[0] = 1
	}
	return d.write(kindPoll, body)
}

// Close gives the place back.
func (d *Device) Close() error { return d.conn.Close() }

func (d *Device) write(kind byte, body []byte) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	return writeMessage(d.conn, kind, body)
}
