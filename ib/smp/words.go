package smp

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// word says how a field is told whose type does not say it.
type word struct {
	// hex is how many hexadecimal digits it is printed with, 0 for decimal.
	hex int
	say func(uint64) string
}

// ViolationsMax is where the violation counters of PortInfo stop.
const ViolationsMax = 0xFFFF

// words are the fields whose meaning does not follow from their type.
var words = map[mad.AttributeID]map[string]word{
	AttrNodeInfo: {
		"NumPorts": {say: unit("port")}, "SystemImageGUID": {hex: 16}, "PartitionCap": {say: unit("P_Key")},
		"DeviceID": {hex: 4}, "Revision": {hex: 8}, "VendorID": {hex: 6},
	},
	AttrSwitchInfo: {
		"LinearFDBCap": {say: entries}, "RandomFDBCap": {say: entries}, "MulticastFDBCap": {say: entries},
		"LinearFDBTop": {say: topOf(0, "the linear table leads nowhere")}, "MulticastFDBTop": {hex: 4, say: topOf(uint64(ib.LIDMulticastMin)-1, "the multicast table leads nowhere, or the switch does not have the field")},
		"DefaultPort":                       {say: exit("for LIDs that the random table does not have")},
		"DefaultMulticastPrimaryPort":       {say: exit("for groups without an entry")},
		"DefaultMulticastNotPrimaryPort":    {say: exit("for groups without an entry, of packets that came in by the primary port")},
		"LifeTimeValue":                     {say: func(v uint64) string { return Lifetime(ib.TimeValue(v)) }},
		"PortStateChange":                   {say: either("no port changed its state since the bit was cleared", "a port changed its state since the bit was cleared")},
		"OptimizedSLToVLMappingProgramming": {say: func(v uint64) string { return yes(v & 1) }},
		"LIDsPerPort":                       {say: unit("LID")}, "PartitionEnforcementCap": {say: unit("P_Key")},
		"InboundEnforcementCap":  {say: either("it cannot check P_Keys of packets that come in", "it can check P_Keys of packets that come in")},
		"OutboundEnforcementCap": {say: either("it cannot check P_Keys of packets that leave", "it can check P_Keys of packets that leave")},
		"FilterRawInboundCap":    {say: either("it cannot drop raw packets that come in", "it can drop raw packets that come in")},
		"FilterRawOutboundCap":   {say: either("it cannot drop raw packets that leave", "it can drop raw packets that leave")},
	},
	AttrGUIDInfo:                 {"GUIDs": {hex: 16, say: either("empty", "")}},
	AttrPortInfo:                 portInfoWords,
	AttrPortInfoExtended:         extendedWords,
	AttrSLToVLMappingTable:       {"VLs": {say: lane}},
	AttrVLArbitrationTable:       {"Weight": {say: weight}},
	AttrLinearForwardingTable:    {"Ports": {say: route}},
	AttrRandomForwardingTable:    {"LMC": {say: masked}, "Port": {say: route}},
	AttrMulticastForwardingTable: {"Masks": {hex: 4}},
	AttrSMInfo:                   {"Priority": {say: either("the lowest", "")}},
	AttrVendorDiag: {
		"NextIndex": {say: func(v uint64) string {
			if v == 0 {
				return "the last of its chain"
			}
			return fmt.Sprintf("goes on in VendorDiag[%d]", v)
		}},
	},
	AttrLEDInfo: {"LEDMask": {say: either("the light is off", "the light is on")}},
	AttrNotice: {
		"IsGeneric": {say: either("the vendor's own", "one of the architecture's")},
		"Type":      {say: noticeTypeName},
		"Producer":  {hex: 6}, "TrapNumber": {say: func(v uint64) string { return trapNames[TrapNumber(v)] }},
		"NoticeCount": {say: either("none is kept", "")},
	},
}

var portInfoWords = map[string]word{
	"GIDPrefix": {hex: 16}, "CapabilityMask": {hex: 8, say: func(v uint64) string { return list(CapabilityMask(v).Names()) }},
	"LID": {say: either("none yet", "")}, "MasterSMLID": {say: either("no subnet manager yet", "")},
	"DiagCode": {hex: 4, say: func(v uint64) string { return explainDiag(DiagCode(v)) }},
	"MKeyLeasePeriod": {say: func(v uint64) string {
		if v == 0 {
			return "never ends"
		}
		return fmt.Sprintf("%d s without its owner", v)
	}},
	"LocalPortNum":     {say: func(uint64) string { return "that received the request" }},
	"LinkWidthEnabled": {say: func(v uint64) string { return all(v, uint64(LinkWidthAll), LinkWidth(v)) }},
	"LinkSpeedEnabled": {say: func(v uint64) string { return all(v, uint64(LinkSpeedAll), LinkSpeed(v)) }},
	"LinkSpeedExtEnabled": {say: func(v uint64) string {
		if v == uint64(LinkSpeedExtDisable) {
			return "none: disabled"
		}
		return all(v, uint64(LinkSpeedExtAll), LinkSpeedExt(v))
	}},
	"MKeyProtectBits": {say: protection},
	"LMC":             {say: masked},
	"VLCap":           {say: lanes}, "OperationalVLs": {say: lanes},
	"InitType": {say: initType}, "InitTypeReply": {say: initType},
	"VLHighLimit": {say: func(v uint64) string {
		switch v {
		case 0:
			return "one packet"
		case 255:
			return "no limit"
		}
		return fmt.Sprintf("%d bytes", v*4096)
	}},
	"VLArbitrationHighCap": {say: entries}, "VLArbitrationLowCap": {say: entries},
	"VLStallCount": {say: unit("packet")}, "HOQLife": {say: func(v uint64) string { return Lifetime(ib.TimeValue(v)) }},
	"PartitionEnforcementInbound":  {say: either("P_Keys of packets that come in are not checked", "P_Keys of packets that come in are checked")},
	"PartitionEnforcementOutbound": {say: either("P_Keys of packets that leave are not checked", "P_Keys of packets that leave are checked")},
	"FilterRawInbound":             {say: either("raw packets may come in", "raw packets that come in are dropped")},
	"FilterRawOutbound":            {say: either("raw packets may leave", "raw packets that would leave are dropped")},
	"MKeyViolations":               {say: violations}, "PKeyViolations": {say: violations}, "QKeyViolations": {say: violations},
	"GUIDCap":                             {say: unit("GUID")},
	"MulticastPKeyTrapSuppressionEnabled": {say: either("traps of bad P_Keys of multicast packets are sent", "traps of bad P_Keys of multicast packets are not sent")},
	"SubnetTimeOut":                       {say: func(v uint64) string { return WaitTime(ib.TimeValue(v)) }},
	"RespTimeValue":                       {say: func(v uint64) string { return WaitTime(ib.TimeValue(v)) }},
	"LocalPhyErrors":                      {say: above("link errors")},
	"OverrunErrors":                       {say: above("periods of flow control in a row with an overrun")},
	"LinkRoundTripLatency":                {say: func(v uint64) string { return fmt.Sprintf("%d ns", v*4) }},
	"CapabilityMask2":                     {hex: 4, say: func(v uint64) string { return list(CapabilityMask2(v).Names()) }},
}

var extendedWords = func() map[string]word {
	out := map[string]word{"CapMask": {hex: 8, say: either("the fields below mean nothing", "")}}
	modes := []string{"no FEC", "FireCode FEC", "RS-FEC", "low-latency RS-FEC"}
	out["FECModeActive"] = word{say: func(v uint64) string {
		if v < uint64(len(modes)) {
			return modes[v]
		}
		return "unknown"
	}}
	for _, speed := range []string{"FDR", "EDR", "HDR", "NDR"} {
		for _, kind := range []string{"Supported", "Enabled"} {
			out[speed+"FECMode"+kind] = word{hex: 4, say: func(v uint64) string {
				var has []string
				for i, m := range modes {
					if v>>i&1 != 0 {
						has = append(has, m)
					}
				}
				return list(has)
			}}
		}
	}
	return out
}()

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func all(v, every uint64, of fmt.Stringer) string {
	if v == every {
		return "all that are supported"
	}
	return of.String()
}

// either says what 0 and what any other value means.
func either(zero, other string) func(uint64) string {
	return func(v uint64) string {
		if v == 0 {
			return zero
		}
		return other
	}
}

func unit(one string) func(uint64) string {
	return func(v uint64) string {
		if v == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %ss", v, one)
	}
}

// masked is how many LIDs a mask count stands for.
func masked(lmc uint64) string { return unit("LID")(1 << lmc) }

func entries(v uint64) string {
	if v == 0 {
		return "no such table"
	}
	return fmt.Sprintf("%d entries", v)
}

func topOf(none uint64, nothing string) func(uint64) string {
	return func(v uint64) string {
		if v == none || v == 0 {
			return nothing
		}
		return fmt.Sprintf("packets for LIDs above %d are dropped", v)
	}
}

func exit(of string) func(uint64) string {
	return func(v uint64) string {
		if v == uint64(ib.PortNone) {
			return "none " + of
		}
		return fmt.Sprintf("port %d %s", v, of)
	}
}

// protection says what M_KeyProtectBits keep from requesters without the M_Key.
func protection(v uint64) string {
	return [...]string{
		"without the M_Key: everything may be read, the M_Key too; nothing set",
		"without the M_Key: everything may be read but the M_Key; nothing set",
		"without the M_Key: nothing is answered", "without the M_Key: nothing is answered",
	}[v&3]
}

func lanes(v uint64) string {
	switch n := DataVLs(uint8(v)); n {
	case 0:
		return "none"
	case 1:
		return "VL0"
	default:
		return fmt.Sprintf("VL0 to VL%d", n-1)
	}
}

func initType(v uint64) string {
	var has []string
	for i, name := range []string{"NoLoad", "PreserveContent", "PreservePresence", "DoNotResuscitate"} {
		if v>>i&1 != 0 {
			has = append(has, name)
		}
	}
	return list(has)
}

func violations(v uint64) string {
	if v >= ViolationsMax {
		return "it stopped here: set it to 0 and it counts again"
	}
	return "packets"
}

func above(what string) func(uint64) string {
	return func(v uint64) string { return fmt.Sprintf("reported above %d %s", v, what) }
}

func lane(v uint64) string {
	if v == 15 {
		return "dropped"
	}
	return fmt.Sprintf("VL%d", v)
}

func weight(v uint64) string {
	if v == 0 {
		return "skipped"
	}
	return fmt.Sprintf("%d bytes", v*64)
}

func route(v uint64) string {
	switch v {
	case uint64(ib.PortNone):
		return "no route"
	case 0:
		return "to the switch itself"
	}
	return fmt.Sprintf("port %d", v)
}
