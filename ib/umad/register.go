package umad

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// The ioctl commands.
const (
	CommandRegister   uint32 = 0xC01C1B01
	CommandUnregister uint32 = 0x40041B02
	CommandEnablePKey uint32 = 0x00001B03
	CommandRegister2  uint32 = 0xC0281B04
)

// Lengths of their arguments in bytes.
const (
	RegisterSize   = 28
	UnregisterSize = 4
	Register2Size  = 40
)

// Version is the ABI version that this package speaks.
const Version = 5

// MaxAgents is how many agents one open file may have.
const MaxAgents = 32

// FlagUserRMPP of a registration: the program does RMPP itself. It is the only
// flag there is.
const FlagUserRMPP uint32 = 1

// Methods is a set of methods without their response bit.
type Methods [2]uint64

// MethodSet is the set of some methods.
func MethodSet(methods ...mad.Method) (s Methods) {
	for _, m := range methods {
		s[m&0x7F/64] |= 1 << (m & 63)
	}
	return s
}

// Has reports whether m is in the set.
func (s Methods) Has(m mad.Method) bool { return s[m&0x7F/64]>>(m&63)&1 != 0 }

// Registration asks for an agent.
type Registration struct {
	ID  uint32 // answered
	QPN uint32 // 0 or 1
	// Class 0 is an agent that gets nothing but answers.
	Class        mad.Class
	ClassVersion uint8
	Flags        uint32 // of the second command
	Methods      Methods
	// OUI is for vendor classes 0x30 to 0x4F: 24 bits, in the 32 of the second
	// command.
	OUI         uint32
	RMPPVersion uint8
}

// Offsets in the arguments.
const (
	offMethods1 = 4
	offMethods2 = 16
	offFlags2   = 12
)

// Encode is the argument of the first command.
func (r *Registration) Encode() []byte {
	b := make([]byte, RegisterSize)
	n := binary.NativeEndian
	n.PutUint32(b, r.ID)
	// The mask is words of the machine, at a place that is no multiple of 8.
	n.PutUint64(b[offMethods1:], r.Methods[0])
	n.PutUint64(b[offMethods1+8:], r.Methods[1])
	b[20], b[21], b[22] = byte(r.QPN), byte(r.Class), r.ClassVersion
	b[23], b[24], b[25], b[26] = byte(r.OUI>>16), byte(r.OUI>>8), byte(r.OUI), r.RMPPVersion
	return b
}

// Encode2 is the argument of the second command.
func (r *Registration) Encode2() []byte {
	b := make([]byte, Register2Size)
	n := binary.NativeEndian
	n.PutUint32(b, r.ID)
	n.PutUint32(b[4:], r.QPN)
	b[8], b[9] = byte(r.Class), r.ClassVersion
	n.PutUint32(b[offFlags2:], r.Flags)
	n.PutUint64(b[offMethods2:], r.Methods[0])
	n.PutUint64(b[offMethods2+8:], r.Methods[1])
	n.PutUint32(b[32:], r.OUI)
	b[36] = r.RMPPVersion
	return b
}

// ReadRegistration reads the argument of one of the two commands.
func ReadRegistration(command uint32, b []byte) (r Registration, err error) {
	n := binary.NativeEndian
	switch {
	case command == CommandRegister && len(b) >= RegisterSize:
		r.Methods = Methods{n.Uint64(b[offMethods1:]), n.Uint64(b[offMethods1+8:])}
		r.QPN, r.Class, r.ClassVersion = uint32(b[20]), mad.Class(b[21]), b[22]
		r.OUI, r.RMPPVersion = uint32(b[23])<<16|uint32(b[24])<<8|uint32(b[25]), b[26]
	case command == CommandRegister2 && len(b) >= Register2Size:
		r.QPN, r.Class, r.ClassVersion = n.Uint32(b[4:]), mad.Class(b[8]), b[9]
		r.Flags, r.OUI, r.RMPPVersion = n.Uint32(b[offFlags2:]), n.Uint32(b[32:]), b[36]
		r.Methods = Methods{n.Uint64(b[offMethods2:]), n.Uint64(b[offMethods2+8:])}
	default:
		return r, fmt.Errorf("umad registration: command %#x with %d bytes", command, len(b))
	}
	r.ID = n.Uint32(b)
	return r, nil
}

// ReadID reads the argument of CommandUnregister.
func ReadID(b []byte) (id uint32, ok bool) {
	if len(b) < UnregisterSize {
		return 0, false
	}
	return binary.NativeEndian.Uint32(b), true
}

// EncodeID is the argument of CommandUnregister.
func EncodeID(id uint32) []byte { return binary.NativeEndian.AppendUint32(nil, id) }
