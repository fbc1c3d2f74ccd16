package plug

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// A message is its kind, the length of what follows (2 bytes, big-endian), and that. The first is the
// name of the node, from the device; it is answered by the GUIDs, or by why not.
const (
	kindName   = 'n' // to the server: the name of the node
	kindGUIDs  = 'g' // to the device: node and port GUID, 8 bytes each, and the node's description
	kindRefuse = 'r' // to the device: why it has no place
	kindPoll   = 'l' // to the server: 1 byte, 1 while it looks for a peer, and the widths and speeds that it has
	kindUp     = 'u' // to the device: width and speed of the link
	kindDown   = 'd' // to the device: the other end is lost
	kindPacket = 'p' // either way: LRH to VCRC
)

// messageMax is the most bytes that a message has behind its length.
const messageMax = packet.MaxSize

func writeMessage(w io.Writer, kind byte, body []byte) error {
	if len(body) > messageMax {
		return fmt.Errorf("a message of %d bytes, want at most %d", len(body), messageMax)
	}
	b := binary.BigEndian.AppendUint16([]byte{kind}, uint16(len(body)))
	_, err := w.Write(append(b, body...))
	return err
}

// readMessage reads a message into buf.
func readMessage(r io.Reader, buf *[messageMax]byte) (kind byte, body []byte, err error) {
	var head [3]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint16(head[1:])
	if int(n) > messageMax {
		return 0, nil, fmt.Errorf("a message of %d bytes, want at most %d", n, messageMax)
	}
	_, err = io.ReadFull(r, buf[:n])
	return head[0], buf[:n], err
}

// link is a width and a speed as a message has them: one byte each.
func link(w smp.LinkWidth, s smp.LinkSpeed) []byte { return []byte{byte(w), byte(s)} }
