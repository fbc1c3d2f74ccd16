package smp

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// SMInfoSize is the length of SMInfo in bytes.
const SMInfoSize = 21

// SMState is what a subnet manager is doing.
type SMState uint8

// The states of a subnet manager.
const (
	SMNotActive   SMState = 0
	SMDiscovering SMState = 1
	SMStandby     SMState = 2
	SMMaster      SMState = 3
)

// String names the state.
func (s SMState) String() string {
	return nameOf(uint8(s), "SM state", "not active", "discovering", "standby", "master")
}

// SMControl is the modifier of a Set of SMInfo: what the sender wants of the
// receiver.
type SMControl uint32

// The kinds of control packet.
const (
	SMControlHandover    SMControl = 1 // a standby or master is asked to take over
	SMControlAcknowledge SMControl = 2 // the receiver of a handover has taken over
	SMControlDisable     SMControl = 3 // a standby becomes not active
	SMControlStandby     SMControl = 4 // a not active one becomes standby
	SMControlDiscover    SMControl = 5 // a standby begins to discover
)

// IsValid reports whether c is one of the five.
func (c SMControl) IsValid() bool { return c >= SMControlHandover && c <= SMControlDiscover }

// SMInfo describes a subnet manager. All of it is read only; a Set is a
// control packet and carries the SMInfo of its sender.
type SMInfo struct {
	GUID     ib.PortGUID `ib:"0,64"`   // of the port that the subnet manager is behind
	SMKey    ib.SMKey    `ib:"64,64"`  // 0 for a requester that has not proved its authority
	ActCount uint32      `ib:"128,32"` // grows with every act of the subnet manager
	Priority uint8       `ib:"160,4"`  // 15 is the highest
	SMState  SMState     `ib:"164,4"`

	spare spare `ib:"spare"`
}

// AttrSMInfo is the number of SMInfo.
const AttrSMInfo mad.AttributeID = 0x0020

var smInfoFormat = add[SMInfo](Descriptor{ID: AttrSMInfo, Size: SMInfoSize, Access: AccessGetSet, Modifier: ModifierControl, Of: OfEndPort})

// ID is AttrSMInfo.
func (*SMInfo) ID() mad.AttributeID { return AttrSMInfo }

// String prints the fields; reserved bits are left out.
func (a SMInfo) String() string { return layout.Print(a) }

// UnmarshalBinary reads SMInfoSize bytes.
func (s *SMInfo) UnmarshalBinary(data []byte) error { return smInfoFormat.Unmarshal(s, data) }

// Encode writes the 64 bytes of data.
func (s *SMInfo) Encode(dst *[mad.DataSize]byte) error { return smInfoFormat.Encode(s, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (s *SMInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, s) }
