package smp

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// NoticeDetailsSize is the length of Notice.Details in bytes.
const NoticeDetailsSize = 54

// NoticeType ranks an event.
type NoticeType uint8

// The types of event.
const (
	NoticeFatal            NoticeType = 0
	NoticeUrgent           NoticeType = 1
	NoticeSecurity         NoticeType = 2
	NoticeSubnetManagement NoticeType = 3
	NoticeInformational    NoticeType = 4
	NoticeEmpty            NoticeType = 0x7F // the notice holds no event
)

// Producers of a generic notice. The first three equal ib.NodeType.
const (
	ProducerCA           uint32 = 1
	ProducerSwitch       uint32 = 2
	ProducerRouter       uint32 = 3
	ProducerClassManager uint32 = 4
)

// TrapNumber names the event of a generic notice.
type TrapNumber uint16

// The traps of subnet management. 64 to 69 come from subnet administration.
const (
	TrapGIDInService          TrapNumber = 64
	TrapGIDOutOfService       TrapNumber = 65
	TrapMulticastGroupCreated TrapNumber = 66
	TrapMulticastGroupDeleted TrapNumber = 67
	TrapUnpath                TrapNumber = 68
	TrapRepath                TrapNumber = 69
	TrapLinkStateChanged      TrapNumber = 128
	TrapLinkIntegrity         TrapNumber = 129
	TrapBufferOverrun         TrapNumber = 130
	TrapFlowControlWatchdog   TrapNumber = 131
	TrapLocalChange           TrapNumber = 144
	TrapSystemImageGUID       TrapNumber = 145
	TrapBadMKey               TrapNumber = 256
	TrapBadPKey               TrapNumber = 257
	TrapBadQKey               TrapNumber = 258
	TrapSwitchBadPKey         TrapNumber = 259
)

// Type is the rank of the events that n stands for.
func (n TrapNumber) Type() NoticeType {
	switch {
	case n >= TrapGIDInService && n <= TrapRepath:
		return NoticeSubnetManagement
	case n >= TrapLinkStateChanged && n <= TrapFlowControlWatchdog:
		return NoticeUrgent
	case n >= TrapBadMKey && n <= TrapSwitchBadPKey:
		return NoticeSecurity
	}
	return NoticeInformational
}

// Notice describes one event. It is the data of a trap, and what a device that
// queues events answers to a Get.
type Notice struct {
	IsGeneric bool       `ib:"0,1"` // false: the vendor's own event
	Type      NoticeType `ib:"1,7"`
	// Producer is the kind of device of a generic notice (ProducerCA and
	// so on), the 24 bits of the VendorID of any other.
	Producer uint32 `ib:"8,24"`
	// TrapNumber is the DeviceID in a notice that is not generic.
	TrapNumber   TrapNumber `ib:"32,16"`
	IssuerLID    ib.LID     `ib:"48,16"`
	NoticeToggle bool       `ib:"64,1"`
	NoticeCount  uint16     `ib:"65,15"`
	// Details depend on the trap number; the types with a name in ...Details
	// read and write them.
	Details [NoticeDetailsSize]byte `ib:"80,432"`
}

// AttrNotice is the number of Notice.
const AttrNotice mad.AttributeID = 0x0002

var noticeFormat = add[Notice](Descriptor{ID: AttrNotice, Size: mad.DataSize, Access: AccessGetSet, Modifier: ModifierNone, Of: OfEndPort})

// ID is AttrNotice.
func (*Notice) ID() mad.AttributeID { return AttrNotice }

// String prints the fields; reserved bits are left out.
func (a Notice) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (n *Notice) UnmarshalBinary(data []byte) error { return noticeFormat.Unmarshal(n, data) }

// Encode writes the 64 bytes of data.
func (n *Notice) Encode(dst *[mad.DataSize]byte) error { return noticeFormat.Encode(n, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (n *Notice) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, n) }

// NewTrap makes the generic notice of trap number, sent by a device of the
// given kind whose LID is issuer.
func NewTrap(number TrapNumber, producer uint32, issuer ib.LID, details TrapDetails) (Notice, error) {
	n := Notice{
		IsGeneric:  true,
		Type:       number.Type(),
		Producer:   producer,
		TrapNumber: number,
		IssuerLID:  issuer,
	}
	if err := details.Encode(&n.Details); err != nil {
		return Notice{}, fmt.Errorf("trap %d: %w", number, err)
	}
	return n, nil
}

// TrapDetails reads and writes Notice.Details of some traps.
type TrapDetails interface {
	// UnmarshalBinary reads NoticeDetailsSize bytes.
	UnmarshalBinary(data []byte) error
	// Encode writes the whole of dst; on an error dst stays as it was.
	Encode(dst *[NoticeDetailsSize]byte) error
}

// TypedDetails reads the details of a generic notice; ok is false when the
// trap is none of those that have a type here.
func (n *Notice) TypedDetails() (details TrapDetails, ok bool) {
	if !n.IsGeneric {
		return nil, false
	}
	switch n.TrapNumber {
	case TrapGIDInService, TrapGIDOutOfService, TrapMulticastGroupCreated, TrapMulticastGroupDeleted:
		details = new(GIDDetails)
	case TrapUnpath, TrapRepath:
		details = new(PathDetails)
	case TrapLinkStateChanged:
		details = new(LinkStateDetails)
	case TrapLinkIntegrity, TrapBufferOverrun, TrapFlowControlWatchdog:
		details = new(PortDetails)
	case TrapLocalChange:
		details = new(LocalChangeDetails)
	case TrapSystemImageGUID:
		details = new(SystemImageGUIDDetails)
	case TrapBadMKey:
		details = new(BadMKeyDetails)
	case TrapBadPKey, TrapBadQKey:
		details = new(BadKeyDetails)
	case TrapSwitchBadPKey:
		details = new(SwitchBadPKeyDetails)
	default:
		return nil, false
	}
	return details, details.UnmarshalBinary(n.Details[:]) == nil
}
