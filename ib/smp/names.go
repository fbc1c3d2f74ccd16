package smp

import "fmt"

// capabilityNames are the bits of CapabilityMask by the names that the architecture gives them.
var capabilityNames = [32]string{
	1: "IsSM", 2: "IsNoticeSupported", 3: "IsTrapSupported", 4: "IsOptionalIPDSupported", 5: "IsAutomaticMigrationSupported",
	6: "IsSLMappingSupported", 7: "IsMKeyNVRAM", 8: "IsPKeyNVRAM", 9: "IsLEDInfoSupported", 10: "IsSMdisabled",
	11: "IsSystemImageGUIDSupported", 12: "IsPKeySwitchExternalPortTrapSupported", 13: "IsCableInfoSupported",
	14: "IsExtendedSpeedsSupported", 15: "IsCapabilityMask2Supported", 16: "IsCommunicationManagementSupported",
	17: "IsSNMPTunnelingSupported", 18: "IsReinitSupported", 19: "IsDeviceManagementSupported", 20: "IsVendorClassSupported",
	21: "IsDRNoticeSupported", 22: "IsCapabilityMaskNoticeSupported", 23: "IsBootManagementSupported",
	24: "IsLinkRoundTripLatencySupported", 25: "IsClientReregistrationSupported", 26: "IsOtherLocalChangesNoticeSupported",
	27: "IsLinkSpeedWidthPairsTableSupported", 28: "IsVendorSpecificMadsTableSupported",
	29: "IsMcastPkeyTrapSuppressionSupported", 30: "IsMulticastFDBTopSupported", 31: "IsHierarchyInfoSupported",
}

// capability2Names are those of CapabilityMask2.
var capability2Names = [16]string{
	"IsSetNodeDescriptionSupported", "IsPortInfoExtendedSupported", "IsVirtualizationSupported",
	"IsSwitchPortStateTableSupported", "IsLinkWidth2xSupported", "IsLinkSpeedHDRSupported", "IsMKeyProtectBitsExtSupported",
	"IsEnhancedTrap128Supported", "IsPartitionTopSupported", "IsEnhancedQoSArbiterSupported", "IsLinkSpeedNDRSupported",
	"IsExtendedSpeeds2Supported", "IsLinkSpeedXDRSupported",
}

// Names lists the bits that are set, by the names of the architecture; a bit without one by its number.
func (m CapabilityMask) Names() []string { return setBits(uint64(m), capabilityNames[:]) }

// Names lists the bits that are set, by the names of the architecture; a bit without one by its number.
func (m CapabilityMask2) Names() []string { return setBits(uint64(m), capability2Names[:]) }

func setBits(mask uint64, names []string) (out []string) {
	for i, name := range names {
		switch {
		case mask>>i&1 == 0:
		case name == "":
			out = append(out, fmt.Sprintf("bit %d", i))
		default:
			out = append(out, name)
		}
	}
	return out
}

// noticeTypeName names the rank of an event.
func noticeTypeName(t uint64) string {
	if NoticeType(t) == NoticeEmpty {
		return "empty: it tells of no event"
	}
	return nameOf(uint8(t), "notice type", "fatal", "urgent", "security", "subnet management", "informational")
}

// trapNames are the events of generic notices.
var trapNames = map[TrapNumber]string{
	TrapGIDInService: "a GID is in service", TrapGIDOutOfService: "a GID is out of service",
	TrapMulticastGroupCreated: "a multicast group was created", TrapMulticastGroupDeleted: "a multicast group was deleted",
	TrapUnpath: "a path is gone", TrapRepath: "a path is back",
	TrapLinkStateChanged: "a port of the switch changed its state", TrapLinkIntegrity: "too many link errors",
	TrapBufferOverrun: "too many buffer overruns", TrapFlowControlWatchdog: "no flow control update in time",
	TrapLocalChange: "the port's capabilities or settings changed", TrapSystemImageGUID: "SystemImageGUID changed",
	TrapBadMKey: "a wrong M_Key", TrapBadPKey: "a wrong P_Key", TrapBadQKey: "a wrong Q_Key",
	TrapSwitchBadPKey: "a wrong P_Key at a switch port",
}
