package property

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// capabilities are the bits of CapabilityMask that a device can have when it is
// switched on. IsSM is not among them: it is on while a manager runs there.
var capabilities = map[string]smp.CapabilityMask{
	"notices":                         smp.CapNoticeSupported,
	"traps":                           smp.CapTrapSupported,
	"optional-ipd":                    smp.CapOptionalIPD,
	"automatic-migration":             smp.CapAutomaticMigration,
	"sl-mapping":                      smp.CapSLMapping,
	"mkey-nvram":                      smp.CapMKeyNVRAM,
	"pkey-nvram":                      smp.CapPKeyNVRAM,
	"led":                             smp.CapLEDInfo,
	"sm-disabled":                     smp.CapSMDisabled,
	"system-image-guid-supported":     smp.CapSystemImageGUID,
	"switch-pkey-traps":               smp.CapPKeySwitchExternalPortTrap,
	"cable-info":                      smp.CapCableInfo,
	"extended-speeds":                 smp.CapExtendedSpeeds,
	"capability-mask2":                smp.CapHasCapabilityMask2,
	"communication-management":        smp.CapCommunicationManagement,
	"snmp-tunnelling":                 smp.CapSNMPTunnelling,
	"reinit":                          smp.CapReinit,
	"device-management":               smp.CapDeviceManagement,
	"vendor-class":                    smp.CapVendorClass,
	"dr-notice":                       smp.CapDRNotice,
	"capability-mask-notice":          smp.CapCapabilityMaskNotice,
	"boot-management":                 smp.CapBootManagement,
	"link-round-trip-latency":         smp.CapLinkRoundTripLatency,
	"client-reregistration":           smp.CapClientReregistration,
	"other-local-changes-notice":      smp.CapOtherLocalChangesNotice,
	"link-speed-width-pairs":          smp.CapLinkSpeedWidthPairsTable,
	"vendor-mads":                     smp.CapVendorMADs,
	"multicast-pkey-trap-suppression": smp.CapMulticastPKeyTrapSuppression,
	"multicast-fdb-top":               smp.CapMulticastFDBTop,
	"hierarchy-info":                  smp.CapHierarchyInfo,
}

// capabilities2 are those of CapabilityMask2, which stands behind the bit
// capability-mask2.
var capabilities2 = map[string]smp.CapabilityMask2{
	"set-node-description":    smp.Cap2SetNodeDescription,
	"port-info-extended":      smp.Cap2PortInfoExtended,
	"virtualization":          smp.Cap2Virtualization,
	"switch-port-state-table": smp.Cap2SwitchPortStateTable,
	"link-width-2x":           smp.Cap2LinkWidth2X,
	"link-speed-hdr":          smp.Cap2LinkSpeedHDR,
	"mkey-protect-bits-ext":   smp.Cap2MKeyProtectBitsExt,
	"enhanced-trap-128":       smp.Cap2EnhancedTrap128,
	"partition-top":           smp.Cap2PartitionTop,
	"enhanced-qos-arbiter":    smp.Cap2EnhancedQoSArbiter,
	"link-speed-ndr":          smp.Cap2LinkSpeedNDR,
	"extended-speeds2":        smp.Cap2ExtendedSpeeds2,
	"link-speed-xdr":          smp.Cap2LinkSpeedXDR,
}

// addCapabilities gives each bit a property of its name.
func addCapabilities(all map[string]Property) {
	for name, bit := range capabilities {
		all[name] = ofPorts(1, func(p *sma.PortConfig, n uint64) { p.CapabilityMask = with(p.CapabilityMask, bit, n) })
	}
	for name, bit := range capabilities2 {
		all[name] = ofPorts(1, func(p *sma.PortConfig, n uint64) { p.CapabilityMask2 = with(p.CapabilityMask2, bit, n) })
	}
}

// with is a mask with one bit on when n is 1, and off otherwise.
func with[Mask smp.CapabilityMask | smp.CapabilityMask2](m, bit Mask, n uint64) Mask {
	if n == 1 {
		return m | bit
	}
	return m &^ bit
}
