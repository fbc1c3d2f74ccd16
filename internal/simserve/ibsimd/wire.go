package ibsimd

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// A control request and its answer, in the machine's own byte order:
// magic, client, kind, length of the payload, 64 bytes of payload.
const (
	controlSize  = 80
	controlMagic = 0xDEADBEEF
	payloadSize  = 64
)

type control [controlSize]byte

func (c *control) magic() uint32         { return binary.NativeEndian.Uint32(c[0:]) }
func (c *control) client() uint32        { return binary.NativeEndian.Uint32(c[4:]) }
func (c *control) kind() controlKind     { return controlKind(binary.NativeEndian.Uint32(c[8:])) }
func (c *control) setKind(k controlKind) { binary.NativeEndian.PutUint32(c[8:], uint32(k)) }
func (c *control) payload() *[payloadSize]byte {
	return (*[payloadSize]byte)(c[16:])
}

type controlKind uint32

const (
	controlError controlKind = iota // in answers only
	controlConnect
	controlDisconnect
	controlGetPort
	controlGetVendor
	controlGetGID
	controlGetGUID
	controlGetNodeInfo
	controlGetPortInfo
	controlSetIsSM
	controlGetPKeys
)

// Offsets in the payload of a connect request, in bytes: a number that names
// the client's data socket (the client's number in the answer), a queue pair
// that nobody uses, whether the client is a subnet manager, and a node's name
// with a closing zero.
const (
	offConnectID   = 0
	offConnectIsSM = 8
	offConnectNode = 12
	nodeNameSize   = 32
)

// nodeName reads the name in a connect request.
func nodeName(payload *[payloadSize]byte) string {
	name, _, _ := bytes.Cut(payload[offConnectNode:offConnectNode+nodeNameSize], []byte{0})
	return string(name)
}

// keysInAnswer is the number of P_Keys that GET_PKEYS tells of.
const keysInAnswer = 32

// datagram is what travels on a data socket: a header of 32 bytes and the MAD.
// LIDs stand big-endian in the first two of four bytes, all other fields are
// big-endian.
type datagram [packetSize]byte

const (
	packetSize = offMAD + mad.Size

	offDLID   = 0
	offSLID   = 4
	offDestQP = 8
	offSrcQP  = 12
	offStatus = 16
	offLength = 24 // 64 bits
	offMAD    = 32

	// statusNoAnswer is ETIMEDOUT: a request that comes back.
	statusNoAnswer = 110
)

func (p *datagram) mad() *madBytes { return (*madBytes)(p[offMAD:]) }
func (p *datagram) dlid() ib.LID   { return ib.LID(binary.BigEndian.Uint16(p[offDLID:])) }
func (p *datagram) destQP() ib.QPN { return ib.QPN(binary.BigEndian.Uint32(p[offDestQP:])) }

// address fills in the header of a packet to a client; the MAD is left as it
// is.
func (p *datagram) address(slid, dlid ib.LID, source, dest ib.QPN) {
	clear(p[:offMAD])
	binary.BigEndian.PutUint16(p[offDLID:], uint16(dlid))
	binary.BigEndian.PutUint16(p[offSLID:], uint16(slid))
	binary.BigEndian.PutUint32(p[offDestQP:], uint32(dest))
	binary.BigEndian.PutUint32(p[offSrcQP:], uint32(source))
	binary.BigEndian.PutUint64(p[offLength:], mad.Size)
}

// measure enters how much of a last segment means something: programs under
// libumad2sim count records by the length of a datagram.
func (p *datagram) measure() {
	m := p.mad()
	var h mad.RMPP
	if m.isSMP() || m.class() != mad.ClassSubnAdm || h.UnmarshalBinary(m[mad.HeaderSize:]) != nil {
		return
	}
	if h.Type == mad.RMPPData && h.Flags.Has(mad.RMPPActive|mad.RMPPLast) {
		n := mad.HeaderSize + mad.RMPPHeaderSize + uint64(h.Data2)
		binary.BigEndian.PutUint64(p[offLength:], min(n, mad.Size))
	}
}

// madBytes is a datagram in its bytes; no more of it is decoded here than
// says where it goes.
type madBytes [mad.Size]byte

func (m *madBytes) class() mad.Class   { return mad.Class(m[mad.OffsetClass]) }
func (m *madBytes) method() mad.Method { return mad.Method(m[mad.OffsetMethod]) }
func (m *madBytes) isDirected() bool   { return m.class() == mad.ClassSubnDirected }
func (m *madBytes) isSMP() bool        { return m.isDirected() || m.class() == mad.ClassSubnLID }
func (m *madBytes) attribute() uint16  { return binary.BigEndian.Uint16(m[mad.OffsetAttributeID:]) }

// wantsAnswer reports whether a datagram is a request that is answered. Traps,
// TrapRepress and Send are not.
func (m *madBytes) wantsAnswer() bool {
	switch m.method() {
	case mad.MethodTrap, mad.MethodTrapRepress, mad.MethodSend:
		return false
	}
	return !m.method().IsResponse()
}

// patience is how long a request may be in the fabric: an agent answers at once,
// a program takes its time.
func (m *madBytes) patience() time.Duration {
	if m.isSMP() && m.attribute() != uint16(smp.AttrSMInfo) {
		return AnswerTime
	}
	return PeerTime
}

// tag is bits 63 to 48 of the transaction identifier, which belong to the
// simulator while a datagram is in the fabric; see request.
func (m *madBytes) tag() uint16     { return binary.BigEndian.Uint16(m[mad.OffsetTransactionID:]) }
func (m *madBytes) setTag(t uint16) { binary.BigEndian.PutUint16(m[mad.OffsetTransactionID:], t) }

// transaction is the whole transaction identifier.
func (m *madBytes) transaction() uint64 { return binary.BigEndian.Uint64(m[mad.OffsetTransactionID:]) }

// concerns reports whether two datagrams are of one transaction: the same
// class, attribute and transaction, tag left out.
func (m *madBytes) concerns(o *madBytes) bool {
	return m.class() == o.class() && m.attribute() == o.attribute() && [6]byte(m[mad.OffsetTransactionID+2:]) == [6]byte(o[mad.OffsetTransactionID+2:])
}

// queuePair is where datagrams of the class go.
func (m *madBytes) queuePair() ib.QPN {
	if m.isSMP() {
		return ib.QP0
	}
	return ib.QP1
}
