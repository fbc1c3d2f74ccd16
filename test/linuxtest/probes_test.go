//go:build linux

package linuxtest

import (
	"fmt"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/test/need"
)

// probe is a question: the rows that it is about, and how it is asked.
type probe struct {
	rows, asks string
	ask        step
	// differs says who is right where the two differ; empty where they must agree.
	differs string
}

const (
	gets = mad.MethodGet
	sets = mad.MethodSet
)

// Why a machine differs in more than one answer.
const (
	chipDrops = "Ours (C-07): a port counts it. The chip drops the packet before the driver sees it, and its own counter is not in PortInfo."
	noQKey    = "Ours: a port counts a wrong Q_Key. The driver drops the packet, and neither counts nor reports it."
)

// withKey is a request with the test's M_Key.
func withKey(m mad.SMP) mad.SMP { m.MKey = key; return m }

// guarded gives the port an M_Key at a level of protection.
func guarded(level, lease int, more ...step) step {
	return func(a *asked) {
		set("MKey", key, "MKeyProtectBits", level, "MKeyLeasePeriod", lease)(a)
		steps(more...)(a)
	}
}

func attribute(id mad.AttributeID, modifiers ...uint32) step {
	return func(a *asked) {
		for _, n := range modifiers {
			a.tell(fmt.Sprintf("modifier 0x%X", n), directed(gets, id, n))
		}
	}
}

func refusesSet(id mad.AttributeID, modifier uint32) step {
	return func(a *asked) { a.tell("Set", withKey(directed(sets, id, modifier))) }
}

var probes = []probe{
	{"PK-05 PK-18 PT-01 PT-02 PT-03 PT-11 PK-02", "P_KeyTable written and read", steps(pkeys(0x8001, 0x0002, 0, 0x8003), showKeys), ""},
	{"PK-20", "P_KeyTable with both memberships of one partition", func(a *asked) { a.showKeys(setPKeys(0x8001, 0x0001)) }, "Both (C-23): the text has a port in both, and an agent may refuse it. The driver keeps the first and answers 0x00, so that only reading back tells."},
	{"PK-24", "P_KeyTable with 0x8000", func(a *asked) { a.showKeys(setPKeys(0xFFFF, 0x8000)) }, ""},
	{"PK-34", "0x7FFF at index 0", func(a *asked) { a.showKeys(setPKeys(0x7FFF)) }, ""},
	{"PT-06 PT-15 PT-16 PT-10 PT-13 PT-14", "P_KeyTable, block 1 of a table of 4", steps(get(smp.AttrPKeyTable, 1), refusesSet(smp.AttrPKeyTable, 1)), ""},
	{"PT-19", "P_KeyTable with a port number in the modifier", func(a *asked) { a.showKeys(directed(gets, smp.AttrPKeyTable, 1<<16)) }, ""},
	{"PK-21 PK-32 PK-33 PI-108 GI-06 PI-36", "switched off and on: what it starts with", func(a *asked) {
		pkeys(0xFFFF, 0x8001)(a)
		a.restart()
		showKeys(a)
		get(smp.AttrGUIDInfo, 0, "GUIDs")(a)
		shows("PortState", "MKey", "LID", "MasterSMLID", "MKeyViolations", "PKeyViolations", "QKeyViolations", "LMC", "NeighborMTU", "OperationalVLs")(a)
	}, "Open: the text gives no start value of these two. 0xFFFF is no LID of a manager; both send no trap before they have one."},
	{"PK-31 PI-16", "CapabilityMask, and a Set of it", func(a *asked) {
		before := a.portInfo().CapabilityMask
		a.say("bit 8: %v", before.Has(smp.CapPKeyNVRAM))
		set("CapabilityMask", 0)(a)
		a.say("the same after a Set: %v", a.portInfo().CapabilityMask == before)
	}, ""},

	{"PK-06 PK-07 PK-08 PK-09 PK-10 PK-11 PK-12 PK-13 PK-14 PK-15 PK-16 PK-17 PK-22 PK-23 QP-22 QP-23 VB-05 QP-28 PI-100", "UD packets with P_Keys, the queue pair's entry changed under it", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		for _, keys := range [][2]ib.PKey{
			{0x8001, 0x8001}, {0x8001, 0x0001}, {0x0001, 0x8001}, {0x0001, 0x0001}, {0x8001, 0x8002}, {0x8001, 0x0002},
			{0x7FFF, 0xFFFF}, {0x7FFF, 0x7FFF}, {0xFFFF, 0x7FFF}, {0x0000, 0x8000}, {0x8000, 0x8000}, {0x0000, 0x0000},
		} {
			pkeys(keys[0])(a)
			a.datagram(keys[0].String()+" gets "+keys[1].String(), to, keys[1], pairQKey)
		}
	}), chipDrops},
	{"QP-07 PK-19", "UD packets for the second entry of the table", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		pkeys(0x8001, 0x0002)(a)
		a.datagram("0x8002", to, 0x8002, pairQKey)
		a.datagram("0x8001", to, 0x8001, pairQKey)
	}), ""},
	{"PK-25", "UD packets with a GRH, as through a router", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		pkeys(0x8001)(a)
		a.global = true
		a.datagram("0x8001", to, 0x8001, pairQKey)
		a.datagram("0x8002", to, 0x8002, pairQKey)
	}), chipDrops},
	{"QP-04 QK-06 QP-25", "what a UD queue pair sends", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		pkeys(0x8001, 0x8002)(a)
		for _, k := range []ib.PKey{0x8001, 0x8003} {
			pkeys(k)(a)
			a.send(a.packed(packet.OpCodeUDSendOnly, to, k, make([]byte, pairMTU), keyed(pairQKey)))
			for _, v := range a.paired() {
				a.say("P_Key %v, Q_Key %v", v.BTH.PKey(), v.DETH.QKey())
			}
		}
	}), ""},
	{"QP-06", "UD packets for a queue pair that is not there", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		a.datagram("the next number", to+64, 0xFFFF, pairQKey)
	}), ""},
	{"QK-01 QK-02 QK-03 QK-04 QK-07 QK-08 QK-09 QK-25 PI-104", "UD packets with Q_Keys", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		for _, k := range []ib.QKey{pairQKey, 0, pairQKey ^ 1, pairQKey ^ 1<<31, pairQKey ^ 1<<16, pairQKey} {
			a.datagram(k.String(), to, 0xFFFF, k)
		}
	}), noQKey},
	{"QK-24", "UD packets with a wrong P_Key and a wrong Q_Key", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		pkeys(0x8001)(a)
		a.datagram("0x8002, 0x1", to, 0x8002, 1)
	}), chipDrops},
	{"QK-23", "Q_Key after a change of the P_Key table and of PortInfo", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		pkeys(0x8001)(a)
		set("QKeyViolations", 0, "SubnetTimeOut", 12)(a)
		a.datagram("0x11111111", to, 0x8001, pairQKey)
	}), ""},
	{"QP-05", "a message of several packets, by UC", pair(endpoint.UC, func(a *asked, to ib.QPN) {
		pkeys(0x8001)(a)
		a.message(packet.UC, to, 0x8001)
		for _, v := range a.paired() {
			a.say("%v with P_Key %v", v.BTH.OpCode(), v.BTH.PKey())
		}
	}), ""},
	{"QP-26 QP-27 QK-22", "RC requests with a wrong P_Key, and then with the right one", pair(endpoint.RC, func(a *asked, to ib.QPN) {
		pkeys(0x8001)(a)
		for _, k := range []ib.PKey{0x8002, 0x8001} {
			a.counting(k.String(), func() string {
				a.message(packet.RC, to, k)
				if all := a.paired(); len(all) > 0 {
					return all[0].BTH.OpCode().String() + " with P_Key " + all[0].BTH.PKey().String()
				}
				return "silence"
			})
		}
	}), chipDrops},
	{"QP-13", "Get(NodeInfo) with P_Keys that the table lacks", func(a *asked) {
		pkeys(0x8001)(a)
		for _, k := range []ib.PKey{0x8002, 0x7FFF, 0x0003} {
			a.counting(k.String(), func() string {
				got, _ := a.ask(directed(gets, smp.AttrNodeInfo, 0), func(p *packet.MADPacket) { p.QP0PKey = k })
				return a.answer(got)
			})
		}
	}, ""},
	{"QP-15", "the P_Key of an SMP's answer, the table without the default one", func(a *asked) {
		pkeys(0x8001)(a)
		_, v := a.ask(directed(gets, smp.AttrNodeInfo, 0))
		a.say("%v", v.BTH.PKey())
	}, ""},
	{"QP-16 QP-17 QP-18 QK-18", "GMPs with P_Keys", func(a *asked) {
		pkeys(0x8001, 0x0002, 0x7FFF)(a)
		for _, k := range []ib.PKey{0x8001, 0x0001, 0x8002, 0x0002, 0x8003, 0xFFFF, 0x7FFF} {
			a.gmp(k.String(), k, ib.QKeyGSI)
		}
	}, chipDrops + " The chip lets the default partition pass whatever the membership, and the driver does not check QP1: there ours is right (QP-16)."},
	{"QK-10 QK-12", "GMPs with Q_Keys", func(a *asked) {
		for _, k := range []ib.QKey{ib.QKeyGSI, 0x00010000, 0x80010001, 0} {
			a.gmp(k.String(), 0xFFFF, k)
		}
	}, noQKey},
	{"VB-01 VB-08 VB-14", "verbs: the P_Key table", steps(pkeys(0x8001, 0x0002), func(a *asked) { a.say("%s", a.query()) }), ""},
	{"VB-09 VB-10 VB-11 VB-12", "verbs: the counters after violations", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		pkeys(0x8001)(a)
		a.datagram("P_Key", to, 0x8002, pairQKey)
		a.datagram("Q_Key", to, 0x8001, 1)
		a.say("%s", a.query())
	}), chipDrops + " " + noQKey + " The two counters that programs are shown are PortInfo's."},

	{"AT-01 SI-02 VD-03", "Get of attributes 0x10 to 0x36, which are answered with another status than 0x0C", func(a *asked) {
		for id := mad.AttributeID(0x10); id <= 0x36; id++ {
			if got, _ := a.ask(directed(gets, id, 0)); got == nil || got.Status != mad.StatusUnsupportedAttrib {
				a.say("0x%02X: %s", uint16(id), a.answer(got))
			}
		}
	}, "Ours: by VD-03 every end port has VendorDiag (0x30). What a port with one VL says of 0x17 and 0x18: see SV-01 and VA-01."},
	{"AT-02", "by LID, and by directed route with other hop pointers", func(a *asked) {
		m := directed(gets, smp.AttrNodeInfo, 0)
		got, v := a.ask(byLID(m))
		a.say("by LID: %s", a.answer(got))
		a.say("to LID %v of QP %v", v.LRH.DLID(), v.BTH.DestQP())
		for _, hops := range [][2]uint8{{0, 0}, {1, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}, {1, 3}, {64, 1}, {0, 1}} {
			m.HopCount, m.HopPointer = hops[0], hops[1]
			outcome := "silence"
			if got, _ := a.ask(m); got != nil {
				outcome = a.answer(got) + " at " + string('0'+rune(got.HopPointer))
			}
			a.say("count %d pointer %d: %s", hops[0], hops[1], outcome)
		}
		m = directed(gets, smp.AttrNodeInfo, 0)
		m.Direction = true
		a.tell("on its way back", m)
	}, ""},
	{"AT-02", "the return path of an answer, and its DR LIDs", func(a *asked) {
		got, v := a.ask(directed(gets, smp.AttrNodeInfo, 0))
		a.say("return path %v, D %v, DrSLID %v, SLID %v, DLID %v", got.ReturnPath[1], got.Direction, got.DrSLID, v.LRH.SLID(), v.LRH.DLID())
	}, "Open: the texts do not say. SLID 0xFFFF is IBTA's for what a directed route leads back."},
	{"AT-02 MK-04", "versions and methods", func(a *asked) {
		m := directed(gets, smp.AttrNodeInfo, 0)
		m.ClassVersion = 2
		a.tell("class version 2", m)
		m.ClassVersion, m.BaseVersion = 1, 2
		a.tell("base version 2", m)
		m.BaseVersion, m.Method = 1, mad.MethodSend
		a.tell("method Send", m)
		m.Method = 0x15
		a.tell("method 0x15", m)
	}, "Open: the texts do not say. The kernel drops another base version, and the driver hands Send on to programs."},
	{"AT-03 AT-04", "a Set is answered with what a Get shows then", func(a *asked) {
		got, _ := a.ask(a.setPort("SubnetTimeOut", 9, "MasterSMSL", 3))
		then, _ := a.ask(directed(gets, smp.AttrPortInfo, 0))
		a.say("%v %s", got.Data == then.Data, a.answer(got, "SubnetTimeOut", "MasterSMSL"))
	}, ""},
	{"AT-05", "Get with data in it", func(a *asked) {
		for _, id := range []mad.AttributeID{smp.AttrNodeInfo, smp.AttrNodeDescription, smp.AttrPortInfo, smp.AttrPKeyTable, smp.AttrGUIDInfo} {
			m := directed(gets, id, 0)
			bare, _ := a.ask(m)
			for i := range m.Data {
				m.Data[i] = 0xFF
			}
			full, _ := a.ask(m)
			a.say("%s the same: %v", smp.AttributeName(id), bare.Data == full.Data)
		}
	}, "Ours. The driver leaves what stood behind the 40 bytes of NodeInfo."},
	{"AT-06 AT-07", "an attribute of vendors", attribute(0xFF00, 0, 0x10000), ""},

	{"NI-01 NI-02 NI-04", "NodeDescription", func(a *asked) {
		got, _ := a.ask(directed(gets, smp.AttrNodeDescription, 0))
		a.say("%s, UTF-8: %v", a.answer(got), utf8.Valid(got.Data[:]))
		attribute(smp.AttrNodeDescription, 1)(a)
	}, ""},
	{"NI-03", "Set(NodeDescription)", refusesSet(smp.AttrNodeDescription, 0), ""},
	{"NI-06 NI-08 NI-09 NI-10 NI-11 NI-13 NI-14 NI-15 NI-16 NI-17 NI-20 NI-22 NI-23 NI-25 NI-26 PK-35", "NodeInfo", steps(
		get(smp.AttrNodeInfo, 0, "BaseVersion", "ClassVersion", "NodeType", "NumPorts", "SystemImageGUID", "NodeGUID", "PortGUID", "PartitionCap", "DeviceID", "LocalPortNum", "VendorID"),
		attribute(smp.AttrNodeInfo, 1)), ""},
	{"NI-24", "NodeInfo: Revision", get(smp.AttrNodeInfo, 0, "Revision"), ""},
	{"NI-07", "Set(NodeInfo)", refusesSet(smp.AttrNodeInfo, 0), ""},

	{"GI-01 GI-02 GI-04 GI-08 GI-09 GI-10", "GUIDInfo, its blocks", steps(get(smp.AttrGUIDInfo, 0, "GUIDs"), attribute(smp.AttrGUIDInfo, 1, 31, 32)), "Both: the text has blocks 0 to 31, and no more entries than GUIDCap. The driver refuses what lies past them, ours reads zeros."},
	{"GI-05 GI-11", "Set(GUIDInfo), entry 0 too", func(a *asked) {
		g := smp.GUIDInfo{}
		for i := range g.GUIDs {
			g.GUIDs[i] = uint64(0x10 + i)
		}
		send(data(withKey(directed(sets, smp.AttrGUIDInfo, 0)), &g))(a)
		get(smp.AttrGUIDInfo, 0, "GUIDs")(a)
		send(data(withKey(directed(sets, smp.AttrGUIDInfo, 0)), &smp.GUIDInfo{}))(a)
	}, ""},

	{"PI-01 PI-02 PI-03 PI-04 PI-05", "Get(PortInfo) of ports", attribute(smp.AttrPortInfo, 0, 1, 2, 1<<31, 1<<31|1, 255), "Open: bit 31 is newer than the text and than the driver."},
	{"PI-10", "PortInfo: M_Key written", steps(set("MKey", key), shows("MKey")), ""},
	{"PI-11", "PortInfo: GIDPrefix", writes("GIDPrefix", 0xFE80, 0), ""},
	{"PI-13", "PortInfo: LID", func(a *asked) {
		writes("LID", 5, 0, 0xC000, 0xFFFF)(a)
		m := byLID(directed(gets, smp.AttrNodeInfo, 0))
		for _, lid := range []ib.LID{2, 5} {
			a.tell(fmt.Sprint("to LID ", lid), m, func(p *packet.MADPacket) { p.DLID = lid })
		}
	}, ""},
	{"PI-13 PI-51 PI-52", "PortInfo: LMC", func(a *asked) {
		for _, f := range [][]any{{"LMC", 2}, {"LID", 4, "LMC", 2}, {"LID", 6, "LMC", 2}} {
			got, _ := a.ask(a.setPort(f...))
			i := a.portInfo()
			a.say("%v: %s, then LID %v LMC %v", f, a.answer(got), i.LID, i.LMC)
		}
		set("LID", 4, "LMC", 2)(a)
		for _, lid := range []ib.LID{3, 4, 7, 8} {
			a.tell(fmt.Sprint("to LID ", lid), byLID(directed(gets, smp.AttrNodeInfo, 0)), func(p *packet.MADPacket) { p.DLID = lid })
		}
	}, "Ours: the low LMC bits of a LID are zero. The driver takes any."},
	{"PI-14", "PortInfo: MasterSMLID", writes("MasterSMLID", 7, 0, 0xC000), ""},
	{"PI-17 VD-04 PI-109 PI-27 PI-28 PI-32 PI-33 PI-66 PI-67 PI-77 PI-78 PI-50 PI-115 PI-19 PI-30 PI-54 PI-55", "PortInfo: what is read only", func(a *asked) {
		set("DiagCode", 4, "GUIDCap", 9, "LinkWidthSupported", 8, "LinkSpeedSupported", 8, "VLCap", 5, "MTUCap", 1, "LocalPortNum", 9, "LinkWidthActive", 1, "LinkSpeedActive", 4)(a)
		shows("DiagCode", "GUIDCap", "LinkWidthSupported", "LinkSpeedSupported", "VLCap", "MTUCap", "LocalPortNum", "LinkWidthActive", "LinkSpeedActive")(a)
	}, ""},
	{"PI-70 PI-71 PI-72 PI-73 PI-74 PI-75", "PortInfo: arbitration caps with one VL", shows("VLArbitrationHighCap", "VLArbitrationLowCap"), ""},
	{"PI-113 PI-114", "PortInfo: RespTimeValue", steps(set("RespTimeValue", 9), shows("RespTimeValue")), ""},
	{"PI-18", "PortInfo: M_KeyLeasePeriod", writes("MKeyLeasePeriod", 5, 0xFFFF), ""},
	{"PI-20 PI-21 PI-22 PI-23 PI-24 PI-25 PI-26", "PortInfo: LinkWidthEnabled", writes("LinkWidthEnabled", 1, 0, 2, 3, 8, 4, 7, 12, 254, 255), ""},
	{"PI-56 PI-57 PI-58 PI-59 PI-60", "PortInfo: LinkSpeedEnabled", writes("LinkSpeedEnabled", 1, 0, 2, 8, 14, 15), ""},
	{"PI-34 PI-35 PI-37 PI-39", "PortInfo: PortState of an Active port", writes("PortState", 0, 5, 15, 2, 4, 3, 4), "Open (C-28): the text does not list the steps. The adapter goes back from Active to Armed."},
	{"PI-38 PI-39 PI-44 PI-40", "PortInfo: from Polling up to Active", steps(
		toLink("Initialize", "PortPhysicalState", smp.PhysPolling), shows("PortPhysicalState"), writes("PortState", 4, 3, 4)), "Ours: a step that is not legal is refused. The driver says 0x00, and does nothing."},
	{"PI-38", "PortInfo: PortState Down", steps(toLink("Initialize", "PortState", smp.PortDown), shows("PortPhysicalState")), ""},
	{"PI-41 PI-44 PI-45", "PortInfo: PortPhysicalState Disabled, and Sleep", steps(
		toLink("Down", "PortPhysicalState", smp.PhysDisabled), func(a *asked) { a.restart(); a.reset() },
		toLink("Down", "PortPhysicalState", smp.PhysSleep), func(a *asked) { a.restart() }), ""},
	{"PI-42 PI-43 PI-45", "PortInfo: other values of PortPhysicalState", writes("PortPhysicalState", 0, 4, 5, 6, 7, 15), ""},
	{"PI-29 PI-31", "PortInfo: LinkWidthActive after training with 1x alone", steps(
		set("LinkWidthEnabled", 1), toLink("Initialize", "PortPhysicalState", smp.PhysPolling), shows("LinkWidthActive")), "Ours. The chip has no register for it, and the driver always says 4x."},
	{"PI-46 PI-47 PI-48", "PortInfo: LinkDownDefaultState", writes("LinkDownDefaultState", 1, 0, 3, 5, 2), ""},
	{"PI-49", "PortInfo: M_KeyProtectBits", writes("MKeyProtectBits", 1, 2, 3, 0), ""},
	{"PI-61 PI-62", "PortInfo: NeighborMTU", writes("NeighborMTU", 1, 5, 0, 6, 15), ""},
	{"PI-64", "PortInfo: MasterSMSL", writes("MasterSMSL", 5, 15), ""},
	{"PI-65", "the SL of an answer to the master, MasterSMSL 3", func(a *asked) {
		set("MasterSMSL", 3)(a)
		for _, sl := range []ib.SL{0, 1} {
			_, v := a.ask(byLID(directed(gets, smp.AttrNodeInfo, 0)), func(p *packet.MADPacket) { p.SL = sl })
			a.say("of SL %v: %v", sl, v.LRH.SL())
		}
	}, "Ours. The kernel answers on the SL of the request, as devices do today (`keeps-sl`)."},
	{"PI-68 PI-76", "PortInfo: InitType", steps(set("InitType", 5, "InitTypeReply", 5), shows("InitType", "InitTypeReply")), ""},
	{"PI-69", "PortInfo: VLHighLimit", writes("VLHighLimit", 7, 255), ""},
	{"PI-79 PI-80 PI-81 PI-82", "PortInfo: VLStallCount, HOQLife", steps(set("VLStallCount", 3, "HOQLife", 4), shows("VLStallCount", "HOQLife")), ""},
	{"PI-83 PI-84 PI-85", "PortInfo: OperationalVLs", writes("OperationalVLs", 0, 2, 5, 6, 1), ""},
	{"PI-86 PI-87 PI-88 PI-89 PI-90 PI-91 PI-92 PI-93", "PortInfo: enforcement bits", steps(
		set("PartitionEnforcementInbound", true, "PartitionEnforcementOutbound", true, "FilterRawInbound", true, "FilterRawOutbound", true),
		shows("PartitionEnforcementInbound", "PartitionEnforcementOutbound", "FilterRawInbound", "FilterRawOutbound")), ""},
	{"PI-97 PI-103 PI-107", "PortInfo: violation counters of 0, written", steps(
		writes("MKeyViolations", 5), writes("PKeyViolations", 5), writes("QKeyViolations", 5)), ""},
	{"PI-94 PI-96 PI-97 MK-07", "PortInfo: M_KeyViolations", guarded(0, 0, func(a *asked) {
		for range 3 {
			a.ask(directed(sets, smp.AttrPortInfo, 0))
		}
		shows("MKeyViolations")(a)
		writes("MKeyViolations", 9, 0)(a)
	}), ""},
	{"PI-102 PI-103 PI-106 PI-107", "PortInfo: counters after violations, written", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		a.datagram("P_Key", to, 0x8002, pairQKey)
		a.datagram("Q_Key", to, 0xFFFF, 1)
		writes("PKeyViolations", 9, 0)(a)
		writes("QKeyViolations", 9, 0)(a)
	}), chipDrops + " " + noQKey + " Writing 9 and 0 has no effect on a 0."},
	{"PI-98 PI-116", "PortInfo: LocalPhyErrors, OverrunErrors", steps(writes("LocalPhyErrors", 0, 15), writes("OverrunErrors", 0, 15)), ""},
	{"PI-110", "PortInfo: ClientReregister", func(a *asked) {
		got, _ := a.ask(a.setPort("ClientReregister", true))
		a.say("%s", a.answer(got, "ClientReregister"))
		shows("ClientReregister", "MulticastPKeyTrapSuppressionEnabled")(a)
	}, "Ours: the bit is newer than the text, and IBTA has the answer repeat it. The driver puts it into its answer, and then writes over it."},
	{"PI-111 PI-112", "PortInfo: SubnetTimeOut", writes("SubnetTimeOut", 0, 31, 18), ""},

	{"SV-01 SV-03 SV-04", "SLtoVLMappingTable with one VL", steps(attribute(smp.AttrSLToVLMappingTable, 0), refusesSet(smp.AttrSLToVLMappingTable, 0)), "Ours: ports with two data VLs or more have the table. The driver keeps one all the same."},
	{"VA-01 VA-03 VA-04 VA-06", "VLArbitration with one VL", steps(attribute(smp.AttrVLArbitrationTable, 0, 1<<16, 3<<16), refusesSet(smp.AttrVLArbitrationTable, 1<<16)), "Both: each refuses; ours looks at the modifier first."},
	{"SM-01 SM-02", "SMInfo where no manager is", steps(get(smp.AttrSMInfo, 0), refusesSet(smp.AttrSMInfo, 1)), ""},
	{"NO-01", "Get(Notice)", get(smp.AttrNotice, 0), ""},
	{"NO-05 PI-15 NO-03", "the trap of a wrong P_Key", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		a.datagram("P_Key 0x8002 at 0xFFFF", to, 0x8002, pairQKey)
		showTraps(a)
		repress(a)
		pkeys(ib.PKeyDefaultLimited)(a)
		a.datagram("P_Key 0x7FFF at 0x7FFF", to, ib.PKeyDefaultLimited, pairQKey)
		showTraps(a)
	}), "Both: a port may report it. The driver reports what it sees itself: of the default partition, which the chip lets pass."},
	{"NO-03 PI-104", "the trap of a wrong Q_Key", pair(endpoint.UD, func(a *asked, to ib.QPN) {
		a.datagram("Q_Key 0x1", to, 0xFFFF, 1)
		showTraps(a)
	}), noQKey},
	{"NO-03 MK-07", "the trap of a wrong M_Key", guarded(1, 0, func(a *asked) {
		m := directed(sets, smp.AttrPortInfo, 1)
		m.MKey = 0x77
		a.ask(m)
		showTraps(a)
	}), "Ours. The driver puts its own LID where that of the sender belongs, and leaves out the last element of the return path."},
	{"NO-04", "a trap that nobody represses, and then somebody", guarded(1, 0, func(a *asked) {
		a.ask(directed(sets, smp.AttrPortInfo, 0))
		a.pause()
		a.hear(false)
		a.pause()
		a.hear(false)
		a.say("repeated: %v", a.repeated)
		repress(a)
		a.say("then silence")
	}), "Both. The driver sends a trap once, and forgets those that come within SubnetTimeOut."},
	{"NO-04", "two wrong M_Keys at once, SubnetTimeOut 18 (1 s)", guarded(1, 0, func(a *asked) {
		set("SubnetTimeOut", 18)(a)
		for n := range 2 {
			a.ask(directed(sets, smp.AttrPortInfo, uint32(n)))
		}
		a.hear(false)
		a.say("%d at once", len(a.traps))
	}), ""},

	{"VD-01 VD-02 VD-13", "VendorDiag", steps(attribute(smp.AttrVendorDiag, 0, 0xFFFF), refusesSet(smp.AttrVendorDiag, 0)), "Ours. The driver has none."},
	{"LE-03", "LEDInfo", steps(func(a *asked) { a.say("CapabilityMask bit 9: %v", a.portInfo().CapabilityMask.Has(smp.CapLEDInfo)) }, attribute(smp.AttrLEDInfo, 0), refusesSet(smp.AttrLEDInfo, 0)), ""},

	{"MK-01", "an M_Key of 0 guards nothing", send(with(directed(gets, smp.AttrPortInfo, 0), func(m *mad.SMP) { m.MKey = 0x99 }), "MKey"), ""},
	{"MK-04", "without the key: a wrong version, an unknown method", guarded(2, 0, func(a *asked) {
		m := directed(gets, smp.AttrNodeInfo, 0)
		m.ClassVersion = 2
		send(m)(a)
		m.ClassVersion, m.Method = 1, 0x15
		send(m)(a)
	}), "Ours: the key comes first. The driver tells who has no key that the version is wrong, and of methods it guards Get, Set and TrapRepress only."},
	{"MK-05 MK-07", "Get without the key, at each level", func(a *asked) {
		for level := range 4 {
			guarded(level, 0)(a)
			got, _ := a.ask(directed(gets, smp.AttrPortInfo, 0))
			a.say("level %d: %s", level, a.answer(got, "MKey"))
		}
		shows("MKeyViolations", "MKey")(a)
	}, ""},
	{"MK-06 PI-18", "the lease of 1 s, after a refusal", guarded(2, 1, func(a *asked) {
		get(smp.AttrNodeInfo, 0)(a)
		need.Eventually(a, need.Patience, "the lease ends", func() bool {
			a.pause()
			got, _ := a.ask(directed(gets, smp.AttrNodeInfo, 0))
			return got != nil
		})
		shows("MKeyProtectBits", "MKey")(a)
	}), ""},
}
