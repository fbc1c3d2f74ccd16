package mad

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/internal/layout"
)

// Size is the length of every management datagram in bytes.
const Size = 256

// HeaderSize is the length of the common header in bytes.
const HeaderSize = 24

// Version numbers of the headers that this package writes.
const (
	BaseVersion  uint8 = 1
	ClassVersion uint8 = 1 // of the subnet-management classes
)

// Class is a management class (MADHeader:MgmtClass).
type Class uint8

// Management classes.
const (
	ClassSubnLID       Class = 0x01 // subnet management, LID routed
	ClassSubnDirected  Class = 0x81 // subnet management, directed route
	ClassSubnAdm       Class = 0x03 // subnet administration
	ClassPerfMgt       Class = 0x04 // performance management
	ClassCommMgt       Class = 0x07 // communication management
	ClassCongestionMgt Class = 0x21
)

// Method is a method without its response bit.
type Method uint8

// Methods. MethodGetResp is the whole byte, response bit included.
const (
	MethodGet           Method = 0x01
	MethodSet           Method = 0x02
	MethodSend          Method = 0x03
	MethodTrap          Method = 0x05
	MethodReport        Method = 0x06
	MethodTrapRepress   Method = 0x07
	MethodGetTable      Method = 0x12
	MethodGetTraceTable Method = 0x13
	MethodGetMulti      Method = 0x14
	MethodDelete        Method = 0x15
	MethodGetResp       Method = 0x81
	MethodReportResp    Method = 0x86

	// MethodResponse is the response bit R.
	MethodResponse Method = 0x80
)

// IsResponse reports whether the response bit is set.
func (m Method) IsResponse() bool { return m&MethodResponse != 0 }

// String names the method.
func (m Method) String() string {
	switch m {
	case MethodGet:
		return "Get"
	case MethodSet:
		return "Set"
	case MethodSend:
		return "Send"
	case MethodTrap:
		return "Trap"
	case MethodReport:
		return "Report"
	case MethodTrapRepress:
		return "TrapRepress"
	case MethodGetTable:
		return "GetTable"
	case MethodGetTraceTable:
		return "GetTraceTable"
	case MethodGetMulti:
		return "GetMulti"
	case MethodDelete:
		return "Delete"
	case MethodGetResp:
		return "GetResp"
	case MethodReportResp:
		return "ReportResp"
	}
	return fmt.Sprintf("method 0x%02x", uint8(m))
}

// Status is the status of a response (15 bits in a directed-route SMP).
type Status uint16

// Status codes common to all classes.
const (
	StatusOK                 Status = 0x0000
	StatusBusy               Status = 0x0001
	StatusRedirect           Status = 0x0002
	StatusBadVersion         Status = 0x0004
	StatusUnsupportedMethod  Status = 0x0008
	StatusUnsupportedAttrib  Status = 0x000C // this method and attribute together
	StatusInvalidField       Status = 0x001C // a value in the attribute or its modifier
	statusInvalidFieldMask   Status = 0x001C
	statusClassSpecificShift        = 8
)

// String says what the status means, with its value.
func (s Status) String() string {
	var what string
	switch {
	case s == StatusOK:
		what = "ok"
	case s&StatusBusy != 0:
		what = "busy"
	case s&StatusRedirect != 0:
		what = "redirection required"
	case s&statusInvalidFieldMask == StatusBadVersion:
		what = "bad base or class version"
	case s&statusInvalidFieldMask == StatusUnsupportedMethod:
		what = "method not supported"
	case s&statusInvalidFieldMask == StatusUnsupportedAttrib:
		what = "method and attribute not supported together"
	case s&statusInvalidFieldMask == StatusInvalidField:
		what = "invalid value in attribute or modifier"
	case s>>statusClassSpecificShift != 0:
		what = "class-specific status"
	default:
		what = "reserved status"
	}
	return fmt.Sprintf("0x%04x (%s)", uint16(s), what)
}

// AttributeID names what a datagram reads or writes.
type AttributeID uint16

// Header is the common header of every management datagram.
type Header struct {
	BaseVersion       uint8       `ib:"0,8"`
	Class             Class       `ib:"8,8"`
	ClassVersion      uint8       `ib:"16,8"`
	Method            Method      `ib:"24,8"`  // whole byte, response bit included
	Status            Status      `ib:"32,16"` // for a directed-route SMP: all 16 bits, D first
	ClassSpecific     uint16      `ib:"48,16"` // HopPointer and HopCount in a directed-route SMP
	TransactionID     uint64      `ib:"64,64"`
	AttributeID       AttributeID `ib:"128,16"`
	Reserved          uint16      `ib:"144,16"`
	AttributeModifier uint32      `ib:"160,32"`
}

var headerFormat = layout.Of[*Header]("MAD header", HeaderSize)

// UnmarshalBinary reads the first 24 bytes of data.
func (h *Header) UnmarshalBinary(data []byte) error { return headerFormat.Unmarshal(h, data) }

// AppendBinary appends the 24 bytes of the header to b.
func (h *Header) AppendBinary(b []byte) ([]byte, error) { return headerFormat.Append(b, h) }
