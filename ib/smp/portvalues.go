package smp

import (
	"fmt"
	"strings"
)

// CapabilityMask is PortInfo.CapabilityMask: what the port's device can do.
type CapabilityMask uint32

// The bits of CapabilityMask.
const (
	CapIsSM CapabilityMask = 1 << (iota + 1)
	CapNoticeSupported
	CapTrapSupported
	CapOptionalIPD
	CapAutomaticMigration
	CapSLMapping
	CapMKeyNVRAM
	CapPKeyNVRAM
	CapLEDInfo
	CapSMDisabled
	CapSystemImageGUID
	CapPKeySwitchExternalPortTrap
	CapCableInfo
	CapExtendedSpeeds
	CapHasCapabilityMask2
	CapCommunicationManagement
	CapSNMPTunnelling
	CapReinit
	CapDeviceManagement
	CapVendorClass
	CapDRNotice
	CapCapabilityMaskNotice
	CapBootManagement
	CapLinkRoundTripLatency
	CapClientReregistration
	CapOtherLocalChangesNotice
	CapLinkSpeedWidthPairsTable
	CapVendorMADs
	CapMulticastPKeyTrapSuppression
	CapMulticastFDBTop
	CapHierarchyInfo
)

// Has reports whether all bits of want are set.
func (m CapabilityMask) Has(want CapabilityMask) bool { return m&want == want }

// CapabilityMask2 is PortInfo.CapabilityMask2.
type CapabilityMask2 uint16

// The bits of CapabilityMask2.
const (
	Cap2SetNodeDescription CapabilityMask2 = 1 << iota
	Cap2PortInfoExtended
	Cap2Virtualization
	Cap2SwitchPortStateTable
	Cap2LinkWidth2X
	Cap2LinkSpeedHDR
	Cap2MKeyProtectBitsExt
	Cap2EnhancedTrap128
	Cap2PartitionTop
	Cap2EnhancedQoSArbiter
	Cap2LinkSpeedNDR
	Cap2ExtendedSpeeds2
	Cap2LinkSpeedXDR
)

// Has reports whether all bits of want are set.
func (m CapabilityMask2) Has(want CapabilityMask2) bool { return m&want == want }

// PortState is the state of a port's link layer.
type PortState uint8

// The states of the link layer. PortStateNoChange is for Sets only.
const (
	PortStateNoChange PortState = 0
	PortDown          PortState = 1
	PortInit          PortState = 2
	PortArmed         PortState = 3
	PortActive        PortState = 4
)

// String names the state as the InfiniBand diagnostics do.
func (s PortState) String() string {
	return nameOf(uint8(s), "port state", "NoChange", "Down", "Initialize", "Armed", "Active")
}

// PhysState is the state of a port's physical layer.
type PhysState uint8

// The states of the physical layer. PhysNoChange is for Sets only.
const (
	PhysNoChange      PhysState = 0
	PhysSleep         PhysState = 1
	PhysPolling       PhysState = 2
	PhysDisabled      PhysState = 3
	PhysTraining      PhysState = 4
	PhysLinkUp        PhysState = 5
	PhysErrorRecovery PhysState = 6
	PhysTest          PhysState = 7
)

// String names the state as the InfiniBand diagnostics do.
func (s PhysState) String() string {
	return nameOf(uint8(s), "physical state", "NoChange", "Sleep", "Polling", "Disabled", "PortConfigurationTraining", "LinkUp", "LinkErrorRecovery", "PhyTest")
}

// LinkWidth is a set of link widths, in virtual lanes.
type LinkWidth uint8

// The bits of LinkWidth.
const (
	LinkWidth1X  LinkWidth = 1 << 0
	LinkWidth4X  LinkWidth = 1 << 1
	LinkWidth8X  LinkWidth = 1 << 2
	LinkWidth12X LinkWidth = 1 << 3
	LinkWidth2X  LinkWidth = 1 << 4

	// LinkWidthAll, written to LinkWidthEnabled, enables all that is supported.
	LinkWidthAll LinkWidth = 255
)

// String lists the widths, as in "1X or 4X".
func (w LinkWidth) String() string {
	return bitNames(uint8(w), "1X", "4X", "8X", "12X", "2X")
}

// LinkSpeed is a set of speeds per virtual lane.
type LinkSpeed uint8

// The bits of LinkSpeed.
const (
	LinkSpeedSDR LinkSpeed = 1 << 0
	LinkSpeedDDR LinkSpeed = 1 << 1
	LinkSpeedQDR LinkSpeed = 1 << 2

	// LinkSpeedAll, written to LinkSpeedEnabled, enables all that is supported.
	LinkSpeedAll LinkSpeed = 15
)

// String lists the speeds in Gb/s per virtual lane.
func (s LinkSpeed) String() string {
	return bitNames(uint8(s), "2.5 Gbps", "5.0 Gbps", "10.0 Gbps")
}

// LinkSpeedExt is a set of the speeds per virtual lane that came after LinkSpeed.
type LinkSpeedExt uint8

// The bits of LinkSpeedExt.
const (
	LinkSpeedFDR LinkSpeedExt = 1 << 0
	LinkSpeedEDR LinkSpeedExt = 1 << 1
	LinkSpeedHDR LinkSpeedExt = 1 << 2
	LinkSpeedNDR LinkSpeedExt = 1 << 3

	// LinkSpeedExtDisable, written to LinkSpeedExtEnabled, turns all of them off.
	LinkSpeedExtDisable LinkSpeedExt = 30
	// LinkSpeedExtAll, written to LinkSpeedExtEnabled, enables all that is supported.
	LinkSpeedExtAll LinkSpeedExt = 31
)

// String lists the speeds in Gb/s per virtual lane.
func (s LinkSpeedExt) String() string {
	return bitNames(uint8(s), "14.0625 Gbps", "25.78125 Gbps", "53.125 Gbps", "106.25 Gbps")
}

// LinkSpeedExt2 is a set of the speeds per virtual lane that came after LinkSpeedExt.
type LinkSpeedExt2 uint8

// LinkSpeedXDR is the only bit of LinkSpeedExt2 that is known.
const LinkSpeedXDR LinkSpeedExt2 = 1 << 0

// String lists the speeds in Gb/s per virtual lane.
func (s LinkSpeedExt2) String() string { return bitNames(uint8(s), "212.5 Gbps") }

// nameOf is the name of value v, of values that count from 0.
func nameOf(v uint8, what string, names ...string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown %s %d", what, v)
}

// bitNames joins the names of the bits set in mask, bit 0 first; bits without
// a name follow as a number.
func bitNames(mask uint8, names ...string) string {
	var parts []string
	for i, name := range names {
		if mask>>i&1 != 0 {
			parts = append(parts, name)
		}
	}
	if rest := mask >> len(names) << len(names); rest != 0 {
		parts = append(parts, fmt.Sprintf("unknown 0x%02x", rest))
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, " or ")
}

// DataVLs is the number of data virtual lanes that a code of VLCap or OperationalVLs
// stands for (1 to 5 for 1, 2, 4, 8 and 15), 0 for any other code.
func DataVLs(code uint8) int {
	switch {
	case code == 5:
		return 15
	case code >= 1 && code <= 4:
		return 1 << (code - 1)
	}
	return 0
}
