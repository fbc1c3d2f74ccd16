package smp

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// spareDetails holds the bits of Notice.Details that no field covers.
type spareDetails [NoticeDetailsSize]byte

func checkDetails(data []byte) error {
	if len(data) != NoticeDetailsSize {
		return fmt.Errorf("Notice details: %d bytes, want %d", len(data), NoticeDetailsSize)
	}
	return nil
}

// spareOf finds what data holds beyond the fields of d, which were decoded from
// it.
func spareOf(data []byte, d TrapDetails) (s spareDetails) {
	var fields [NoticeDetailsSize]byte
	if err := d.Encode(&fields); err != nil {
		return s // not after decoding: such values fit
	}
	for i, b := range data {
		s[i] = b ^ fields[i]
	}
	return s
}

// GIDDetails belong to traps 64 to 67: the GID of a port, or of a multicast
// group, that came or went.
type GIDDetails struct {
	GID ib.GID

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *GIDDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = GIDDetails{GID: ib.GID(data[6:22])}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details; it cannot fail.
func (d *GIDDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	*dst = d.spare
	copy(dst[6:], d.GID[:])
	return nil
}

// PathDetails belong to traps 68 and 69. The path record that follows the two
// fields is kept, but not read.
type PathDetails struct {
	ComponentMask uint64
	WaitForRepath bool

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *PathDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = PathDetails{
		ComponentMask: binary.BigEndian.Uint64(data),
		WaitForRepath: isSet(data[8], 7),
	}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details; it cannot fail.
func (d *PathDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	*dst = d.spare
	binary.BigEndian.PutUint64(dst[0:], d.ComponentMask)
	dst[8] |= flag(d.WaitForRepath, 7)
	return nil
}

// LinkStateDetails belong to trap 128: the switch of which some port came up
// or went down.
type LinkStateDetails struct {
	LID ib.LID

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *LinkStateDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = LinkStateDetails{LID: ib.LID(binary.BigEndian.Uint16(data))}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details; it cannot fail.
func (d *LinkStateDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	*dst = d.spare
	binary.BigEndian.PutUint16(dst[0:], uint16(d.LID))
	return nil
}

// PortDetails belong to traps 129 to 131: the port that is in trouble.
type PortDetails struct {
	LID  ib.LID
	Port ib.PortNum

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *PortDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = PortDetails{
		LID:  ib.LID(binary.BigEndian.Uint16(data[2:])),
		Port: ib.PortNum(data[4]),
	}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details; it cannot fail.
func (d *PortDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	*dst = d.spare
	binary.BigEndian.PutUint16(dst[2:], uint16(d.LID))
	dst[4] = byte(d.Port)
	return nil
}

// LocalChangeDetails belong to trap 144: what changed at a port.
type LocalChangeDetails struct {
	LID               ib.LID
	OtherLocalChanges bool // the Change fields are valid
	CapabilityMask    CapabilityMask
	CapabilityMask2   CapabilityMask2

	CapabilityMask2Change  bool
	HierarchyInfoChange    bool
	SMPriorityChange       bool
	LinkSpeedEnabledChange bool
	LinkWidthEnabledChange bool
	NodeDescriptionChange  bool

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *LocalChangeDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = LocalChangeDetails{
		LID:                    ib.LID(binary.BigEndian.Uint16(data[2:])),
		OtherLocalChanges:      isSet(data[5], 0),
		CapabilityMask:         CapabilityMask(binary.BigEndian.Uint32(data[6:])),
		CapabilityMask2:        CapabilityMask2(binary.BigEndian.Uint16(data[12:])),
		CapabilityMask2Change:  isSet(data[11], 5),
		HierarchyInfoChange:    isSet(data[11], 4),
		SMPriorityChange:       isSet(data[11], 3),
		LinkSpeedEnabledChange: isSet(data[11], 2),
		LinkWidthEnabledChange: isSet(data[11], 1),
		NodeDescriptionChange:  isSet(data[11], 0),
	}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details; it cannot fail.
func (d *LocalChangeDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	*dst = d.spare
	binary.BigEndian.PutUint16(dst[2:], uint16(d.LID))
	dst[5] |= flag(d.OtherLocalChanges, 0)
	binary.BigEndian.PutUint32(dst[6:], uint32(d.CapabilityMask))
	dst[11] |= flag(d.CapabilityMask2Change, 5) | flag(d.HierarchyInfoChange, 4) |
		flag(d.SMPriorityChange, 3) | flag(d.LinkSpeedEnabledChange, 2) |
		flag(d.LinkWidthEnabledChange, 1) | flag(d.NodeDescriptionChange, 0)
	binary.BigEndian.PutUint16(dst[12:], uint16(d.CapabilityMask2))
	return nil
}

// SystemImageGUIDDetails belong to trap 145.
type SystemImageGUIDDetails struct {
	LID             ib.LID
	SystemImageGUID uint64

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *SystemImageGUIDDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = SystemImageGUIDDetails{
		LID:             ib.LID(binary.BigEndian.Uint16(data[2:])),
		SystemImageGUID: binary.BigEndian.Uint64(data[6:]),
	}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details; it cannot fail.
func (d *SystemImageGUIDDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	*dst = d.spare
	binary.BigEndian.PutUint16(dst[2:], uint16(d.LID))
	binary.BigEndian.PutUint64(dst[6:], d.SystemImageGUID)
	return nil
}

// NoticeReturnPathSize is the length of BadMKeyDetails.DRNoticeReturnPath.
const NoticeReturnPathSize = 30

// BadMKeyDetails belong to trap 256: the packet whose M_Key was wrong.
type BadMKeyDetails struct {
	LID               ib.LID // where the packet came from
	DrSLID            ib.LID // directed route only
	Method            mad.Method
	AttributeID       mad.AttributeID
	AttributeModifier uint32
	MKey              ib.MKey // the wrong one
	DRNotice          bool    // the packet was directed route
	DRPathTruncated   bool    // DRNoticeReturnPath is not the whole path
	DRHopCount        uint8   // 6 bits
	// DRNoticeReturnPath is the beginning of the packet's ReturnPath.
	DRNoticeReturnPath [NoticeReturnPathSize]byte

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *BadMKeyDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = BadMKeyDetails{
		LID:                ib.LID(binary.BigEndian.Uint16(data[2:])),
		DrSLID:             ib.LID(binary.BigEndian.Uint16(data[4:])),
		Method:             mad.Method(data[6]),
		AttributeID:        mad.AttributeID(binary.BigEndian.Uint16(data[8:])),
		AttributeModifier:  binary.BigEndian.Uint32(data[10:]),
		MKey:               ib.MKey(binary.BigEndian.Uint64(data[14:])),
		DRNotice:           isSet(data[23], 7),
		DRPathTruncated:    isSet(data[23], 6),
		DRHopCount:         data[23] & 0x3F,
		DRNoticeReturnPath: [NoticeReturnPathSize]byte(data[24:]),
	}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details.
func (d *BadMKeyDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	var w widths
	w.check("DRHopCount", uint64(d.DRHopCount), 6)
	if err := w.err("BadMKeyDetails"); err != nil {
		return err
	}
	*dst = d.spare
	binary.BigEndian.PutUint16(dst[2:], uint16(d.LID))
	binary.BigEndian.PutUint16(dst[4:], uint16(d.DrSLID))
	dst[6] = byte(d.Method)
	binary.BigEndian.PutUint16(dst[8:], uint16(d.AttributeID))
	binary.BigEndian.PutUint32(dst[10:], d.AttributeModifier)
	binary.BigEndian.PutUint64(dst[14:], uint64(d.MKey))
	dst[23] = flag(d.DRNotice, 7) | flag(d.DRPathTruncated, 6) | d.DRHopCount
	copy(dst[24:], d.DRNoticeReturnPath[:])
	return nil
}

// BadKeyDetails belong to traps 257 and 258: the packet whose P_Key or Q_Key
// was wrong. Fields in 1 are of its source, fields in 2 of its destination;
// the GIDs are zero when it had no global route header.
type BadKeyDetails struct {
	LID1, LID2 ib.LID
	Key        uint32 // a P_Key is in the low 16 bits
	SL         ib.SL  // 4 bits
	QP1, QP2   ib.QPN // 24 bits
	GID1, GID2 ib.GID

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *BadKeyDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = BadKeyDetails{
		LID1: ib.LID(binary.BigEndian.Uint16(data[2:])),
		LID2: ib.LID(binary.BigEndian.Uint16(data[4:])),
		Key:  binary.BigEndian.Uint32(data[6:]),
		SL:   ib.SL(data[10] >> 4),
		QP1:  ib.QPN(uint24(data[11:])),
		QP2:  ib.QPN(uint24(data[15:])),
		GID1: ib.GID(data[18:34]),
		GID2: ib.GID(data[34:50]),
	}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details.
func (d *BadKeyDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	var w widths
	w.check("SL", uint64(d.SL), 4)
	w.check("QP1", uint64(d.QP1), 24)
	w.check("QP2", uint64(d.QP2), 24)
	if err := w.err("BadKeyDetails"); err != nil {
		return err
	}
	*dst = d.spare
	binary.BigEndian.PutUint16(dst[2:], uint16(d.LID1))
	binary.BigEndian.PutUint16(dst[4:], uint16(d.LID2))
	binary.BigEndian.PutUint32(dst[6:], d.Key)
	dst[10] |= byte(d.SL) << 4
	putUint24(dst[11:], uint32(d.QP1))
	putUint24(dst[15:], uint32(d.QP2))
	copy(dst[18:], d.GID1[:])
	copy(dst[34:], d.GID2[:])
	return nil
}

// SwitchBadPKeyDetails belong to trap 259: the packet whose P_Key a switch
// port refused. Fields in 1 are of its source, fields in 2 of its destination.
type SwitchBadPKeyDetails struct {
	DataValid  uint16 // which of the fields from LID1 to GID2 are filled
	LID1, LID2 ib.LID
	PKey       ib.PKey
	SL         ib.SL  // 4 bits
	QP1, QP2   ib.QPN // 24 bits
	GID1, GID2 ib.GID
	SwitchLID  ib.LID
	Port       ib.PortNum

	spare spareDetails
}

// UnmarshalBinary reads NoticeDetailsSize bytes.
func (d *SwitchBadPKeyDetails) UnmarshalBinary(data []byte) error {
	if err := checkDetails(data); err != nil {
		return err
	}
	*d = SwitchBadPKeyDetails{
		DataValid: binary.BigEndian.Uint16(data[0:]),
		LID1:      ib.LID(binary.BigEndian.Uint16(data[2:])),
		LID2:      ib.LID(binary.BigEndian.Uint16(data[4:])),
		PKey:      ib.PKey(binary.BigEndian.Uint16(data[6:])),
		SL:        ib.SL(data[8] >> 4),
		QP1:       ib.QPN(uint24(data[9:])),
		QP2:       ib.QPN(uint24(data[13:])),
		GID1:      ib.GID(data[16:32]),
		GID2:      ib.GID(data[32:48]),
		SwitchLID: ib.LID(binary.BigEndian.Uint16(data[48:])),
		Port:      ib.PortNum(data[50]),
	}
	d.spare = spareOf(data, d)
	return nil
}

// Encode writes the details.
func (d *SwitchBadPKeyDetails) Encode(dst *[NoticeDetailsSize]byte) error {
	var w widths
	w.check("SL", uint64(d.SL), 4)
	w.check("QP1", uint64(d.QP1), 24)
	w.check("QP2", uint64(d.QP2), 24)
	if err := w.err("SwitchBadPKeyDetails"); err != nil {
		return err
	}
	*dst = d.spare
	binary.BigEndian.PutUint16(dst[0:], d.DataValid)
	binary.BigEndian.PutUint16(dst[2:], uint16(d.LID1))
	binary.BigEndian.PutUint16(dst[4:], uint16(d.LID2))
	binary.BigEndian.PutUint16(dst[6:], uint16(d.PKey))
	dst[8] |= byte(d.SL) << 4
	putUint24(dst[9:], uint32(d.QP1))
	putUint24(dst[13:], uint32(d.QP2))
	copy(dst[16:], d.GID1[:])
	copy(dst[32:], d.GID2[:])
	binary.BigEndian.PutUint16(dst[48:], uint16(d.SwitchLID))
	dst[50] = byte(d.Port)
	return nil
}
