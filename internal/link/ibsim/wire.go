package ibsim

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Control requests and their answers: 80 bytes in the machine's own order.
const (
	controlSize  = 80
	controlMagic = 0xDEADBEEF
	controlData  = 16 // offset of the 64 bytes of payload
)

type controlType uint32

const (
	controlError      controlType = 0
	controlConnect    controlType = 1
	controlDisconnect controlType = 2
	controlNodeInfo   controlType = 7
	controlSetIsSM    controlType = 9
)

// nodeIDSize is the length of the node name in a connect request, its closing
// zero included.
const nodeIDSize = 32

type control struct {
	client  uint32
	kind    controlType
	payload []byte // at most 64 bytes
}

func (c control) encode() []byte {
	b := make([]byte, controlSize)
	binary.NativeEndian.PutUint32(b[0:], controlMagic)
	binary.NativeEndian.PutUint32(b[4:], c.client)
	binary.NativeEndian.PutUint32(b[8:], uint32(c.kind))
	binary.NativeEndian.PutUint32(b[12:], uint32(len(c.payload)))
	copy(b[controlData:], c.payload)
	return b
}

func decodeControl(b []byte) (control, error) {
	if len(b) != controlSize {
		return control{}, fmt.Errorf("ibsim control answer: %d bytes, want %d", len(b), controlSize)
	}
	return control{
		client:  binary.NativeEndian.Uint32(b[4:]),
		kind:    controlType(binary.NativeEndian.Uint32(b[8:])),
		payload: b[controlData:],
	}, nil
}

// connectPayload asks for a place at the named node, or at the simulator's
// default when the name is empty. id is how the simulator finds the data
// socket: a number in its name, or its UDP port.
func connectPayload(id uint32, node string) ([]byte, error) {
	if len(node) >= nodeIDSize {
		return nil, fmt.Errorf("ibsim node %q: %d bytes, want at most %d", node, len(node), nodeIDSize-1)
	}
	b := make([]byte, 12+nodeIDSize)
	binary.NativeEndian.PutUint32(b[0:], id)
	copy(b[12:], node)
	return b, nil
}

// connected reads the answer: the client's number and the node's name.
func connected(payload []byte) (client uint32, node string) {
	name, _, _ := bytes.Cut(payload[12:12+nodeIDSize], []byte{0})
	return binary.NativeEndian.Uint32(payload), string(name)
}

// A packet on the data socket: a 32-byte header and the MAD.
const (
	packetHeader = 32
	packetSize   = packetHeader + mad.Size
	// statusNoAnswer is ETIMEDOUT: the simulator gives a request back.
	statusNoAnswer = 110
)

func putPacketHeader(b []byte, dlid ib.LID) {
	clear(b[:packetHeader])
	// LIDs are big-endian in the first two of their four bytes. A source LID
	// of zero is filled in by the simulator.
	binary.BigEndian.PutUint16(b[0:], uint16(dlid))
	if dlid == ib.LIDPermissive {
		binary.BigEndian.PutUint16(b[4:], uint16(dlid))
	}
	binary.BigEndian.PutUint64(b[24:], mad.Size)
}

// putQueuePairs enters where a general management datagram goes; it comes from
// queue pair 1.
func putQueuePairs(b []byte, to mad.Address) {
	binary.BigEndian.PutUint32(b[8:], uint32(to.QP))
	binary.BigEndian.PutUint32(b[12:], uint32(ib.QP1))
}

// putGeneralLength enters how much of a general management datagram means
// something, which tells programs under libumad2sim how many records there are.
func putGeneralLength(b []byte) {
	var h mad.RMPP
	if h.UnmarshalBinary(b[packetHeader+mad.HeaderSize:]) != nil {
		return // not with a whole packet
	}
	n := uint64(mad.Size)
	if h.Flags.Has(mad.RMPPActive|mad.RMPPLast) && h.Type == mad.RMPPData {
		n = min(n, mad.HeaderSize+mad.RMPPHeaderSize+uint64(h.Data2))
	}
	binary.BigEndian.PutUint64(b[24:], n)
}

// packetQueuePair is the queue pair that a packet comes from.
func packetQueuePair(b []byte) ib.QPN { return ib.QPN(binary.BigEndian.Uint32(b[12:]) & 0xFF_FFFF) }

func packetStatus(b []byte) uint32 { return binary.BigEndian.Uint32(b[16:]) }

func packetSource(b []byte) ib.LID { return ib.LID(binary.BigEndian.Uint16(b[4:])) }
