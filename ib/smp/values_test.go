package smp

import "fmt"

// The functions of this file read the fields of an attribute under the names
// that the vectors have for them.

type unsigned interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

func num[T unsigned](v T) string { return fmt.Sprintf("%x", uint64(v)) }

func boolean(v bool) string {
	if v {
		return "1"
	}
	return "0"
}

func long(b []byte) string { return plainHex(fmt.Sprintf("%x", b)) }

func nodeDescriptionValues(a Attribute) map[string]string {
	d := a.(*NodeDescription)
	return map[string]string{"NodeString": long(d.NodeString[:])}
}

func nodeInfoValues(a Attribute) map[string]string {
	n := a.(*NodeInfo)
	return map[string]string{
		"BaseVersion":     num(n.BaseVersion),
		"ClassVersion":    num(n.ClassVersion),
		"NodeType":        num(n.NodeType),
		"NumPorts":        num(n.NumPorts),
		"SystemImageGUID": num(n.SystemImageGUID),
		"NodeGUID":        num(n.NodeGUID),
		"PortGUID":        num(n.PortGUID),
		"PartitionCap":    num(n.PartitionCap),
		"DeviceID":        num(n.DeviceID),
		"Revision":        num(n.Revision),
		"LocalPortNum":    num(n.LocalPortNum),
		"VendorID":        num(n.VendorID),
	}
}

func switchInfoValues(a Attribute) map[string]string {
	s := a.(*SwitchInfo)
	return map[string]string{
		"LinearFDBCap":                      num(s.LinearFDBCap),
		"RandomFDBCap":                      num(s.RandomFDBCap),
		"MulticastFDBCap":                   num(s.MulticastFDBCap),
		"LinearFDBTop":                      num(s.LinearFDBTop),
		"DefaultPort":                       num(s.DefaultPort),
		"DefaultMulticastPrimaryPort":       num(s.DefaultMulticastPrimaryPort),
		"DefaultMulticastNotPrimaryPort":    num(s.DefaultMulticastNotPrimaryPort),
		"LifeTimeValue":                     num(s.LifeTimeValue),
		"PortStateChange":                   boolean(s.PortStateChange),
		"OptimizedSLtoVLMappingProgramming": num(s.OptimizedSLToVLMappingProgramming),
		"LIDsPerPort":                       num(s.LIDsPerPort),
		"PartitionEnforcementCap":           num(s.PartitionEnforcementCap),
		"InboundEnforcementCap":             boolean(s.InboundEnforcementCap),
		"OutboundEnforcementCap":            boolean(s.OutboundEnforcementCap),
		"FilterRawInboundCap":               boolean(s.FilterRawInboundCap),
		"FilterRawOutboundCap":              boolean(s.FilterRawOutboundCap),
		"EnhancedPort0":                     boolean(s.EnhancedPort0),
		"MulticastFDBTop":                   num(s.MulticastFDBTop),
	}
}

func guidInfoValues(a Attribute) map[string]string {
	m := map[string]string{}
	for i, guid := range a.(*GUIDInfo).GUIDs {
		m[fmt.Sprintf("GUID%d", i)] = num(guid)
	}
	return m
}

func portInfoValues(a Attribute) map[string]string {
	p := a.(*PortInfo)
	return map[string]string{
		"M_Key":                               num(p.MKey),
		"GidPrefix":                           num(p.GIDPrefix),
		"LID":                                 num(p.LID),
		"MasterSMLID":                         num(p.MasterSMLID),
		"CapabilityMask":                      num(p.CapabilityMask),
		"DiagCode":                            num(p.DiagCode),
		"M_KeyLeasePeriod":                    num(p.MKeyLeasePeriod),
		"LocalPortNum":                        num(p.LocalPortNum),
		"LinkWidthEnabled":                    num(p.LinkWidthEnabled),
		"LinkWidthSupported":                  num(p.LinkWidthSupported),
		"LinkWidthActive":                     num(p.LinkWidthActive),
		"LinkSpeedSupported":                  num(p.LinkSpeedSupported),
		"PortState":                           num(p.PortState),
		"PortPhysicalState":                   num(p.PortPhysicalState),
		"LinkDownDefaultState":                num(p.LinkDownDefaultState),
		"M_KeyProtectBits":                    num(p.MKeyProtectBits),
		"LMC":                                 num(p.LMC),
		"LinkSpeedActive":                     num(p.LinkSpeedActive),
		"LinkSpeedEnabled":                    num(p.LinkSpeedEnabled),
		"NeighborMTU":                         num(p.NeighborMTU),
		"MasterSMSL":                          num(p.MasterSMSL),
		"VLCap":                               num(p.VLCap),
		"InitType":                            num(p.InitType),
		"VLHighLimit":                         num(p.VLHighLimit),
		"VLArbitrationHighCap":                num(p.VLArbitrationHighCap),
		"VLArbitrationLowCap":                 num(p.VLArbitrationLowCap),
		"InitTypeReply":                       num(p.InitTypeReply),
		"MTUCap":                              num(p.MTUCap),
		"VLStallCount":                        num(p.VLStallCount),
		"HOQLife":                             num(p.HOQLife),
		"OperationalVLs":                      num(p.OperationalVLs),
		"PartitionEnforcementInbound":         boolean(p.PartitionEnforcementInbound),
		"PartitionEnforcementOutbound":        boolean(p.PartitionEnforcementOutbound),
		"FilterRawInbound":                    boolean(p.FilterRawInbound),
		"FilterRawOutbound":                   boolean(p.FilterRawOutbound),
		"M_KeyViolations":                     num(p.MKeyViolations),
		"P_KeyViolations":                     num(p.PKeyViolations),
		"Q_KeyViolations":                     num(p.QKeyViolations),
		"GUIDCap":                             num(p.GUIDCap),
		"ClientReregister":                    boolean(p.ClientReregister),
		"MulticastPKeyTrapSuppressionEnabled": num(p.MulticastPKeyTrapSuppressionEnabled),
		"SubnetTimeOut":                       num(p.SubnetTimeOut),
		"RespTimeValue":                       num(p.RespTimeValue),
		"LocalPhyErrors":                      num(p.LocalPhyErrors),
		"OverrunErrors":                       num(p.OverrunErrors),
		"MaxCreditHint":                       num(p.MaxCreditHint),
		"LinkSpeedExtActive2":                 num(p.LinkSpeedExtActive2),
		"LinkSpeedExtSupported2":              num(p.LinkSpeedExtSupported2),
		"LinkSpeedExtEnabled2":                num(p.LinkSpeedExtEnabled2),
		"LinkRoundTripLatency":                num(p.LinkRoundTripLatency),
		"CapabilityMask2":                     num(p.CapabilityMask2),
		"LinkSpeedExtActive":                  num(p.LinkSpeedExtActive),
		"LinkSpeedExtSupported":               num(p.LinkSpeedExtSupported),
		"LinkSpeedExtEnabled":                 num(p.LinkSpeedExtEnabled),
	}
}

func portInfoExtendedValues(a Attribute) map[string]string {
	p := a.(*PortInfoExtended)
	return map[string]string{
		"CapMask":             num(p.CapMask),
		"FECModeActive":       num(p.FECModeActive),
		"FDRFECModeSupported": num(p.FDRFECModeSupported),
		"FDRFECModeEnabled":   num(p.FDRFECModeEnabled),
		"EDRFECModeSupported": num(p.EDRFECModeSupported),
		"EDRFECModeEnabled":   num(p.EDRFECModeEnabled),
		"HDRFECModeSupported": num(p.HDRFECModeSupported),
		"HDRFECModeEnabled":   num(p.HDRFECModeEnabled),
		"NDRFECModeSupported": num(p.NDRFECModeSupported),
		"NDRFECModeEnabled":   num(p.NDRFECModeEnabled),
	}
}

func pkeyTableValues(a Attribute) map[string]string {
	m := map[string]string{}
	for i, key := range a.(*PKeyTable).Keys {
		m[fmt.Sprintf("MembershipType[%d]", i)] = boolean(key.IsFull())
		m[fmt.Sprintf("P_KeyBase[%d]", i)] = num(key.Base())
	}
	return m
}

func slToVLValues(a Attribute) map[string]string {
	m := map[string]string{}
	for sl, vl := range a.(*SLToVLMappingTable).VLs {
		m[fmt.Sprintf("SL%dtoVL", sl)] = num(vl)
	}
	return m
}

func vlArbitrationValues(a Attribute) map[string]string {
	m := map[string]string{}
	for i, e := range a.(*VLArbitrationTable).Entries {
		m[fmt.Sprintf("VL[%d]", i)] = num(e.VL)
		m[fmt.Sprintf("Weight[%d]", i)] = num(e.Weight)
	}
	return m
}

func linearValues(a Attribute) map[string]string {
	m := map[string]string{}
	for i, port := range a.(*LinearForwardingTable).Ports {
		m[fmt.Sprintf("Port[%d]", i)] = num(port)
	}
	return m
}

func randomValues(a Attribute) map[string]string {
	m := map[string]string{}
	for i, e := range a.(*RandomForwardingTable).Entries {
		m[fmt.Sprintf("LID[%d]", i)] = num(e.LID)
		m[fmt.Sprintf("Valid[%d]", i)] = boolean(e.Valid)
		m[fmt.Sprintf("LMC[%d]", i)] = num(e.LMC)
		m[fmt.Sprintf("Port[%d]", i)] = num(e.Port)
	}
	return m
}

func multicastValues(a Attribute) map[string]string {
	m := map[string]string{}
	for i, mask := range a.(*MulticastForwardingTable).Masks {
		m[fmt.Sprintf("PortMask[%d]", i)] = num(mask)
	}
	return m
}

func smInfoValues(a Attribute) map[string]string {
	s := a.(*SMInfo)
	return map[string]string{
		"GUID":     num(s.GUID),
		"SM_Key":   num(s.SMKey),
		"ActCount": num(s.ActCount),
		"Priority": num(s.Priority),
		"SMState":  num(s.SMState),
	}
}

func vendorDiagValues(a Attribute) map[string]string {
	d := a.(*VendorDiag)
	return map[string]string{"NextIndex": num(d.NextIndex), "DiagData": long(d.DiagData[:])}
}

func ledInfoValues(a Attribute) map[string]string {
	return map[string]string{"LedMask": boolean(a.(*LEDInfo).LEDMask)}
}

// noticeValues reads a notice whose details are of the kind of d.
func noticeValues(d TrapDetails, details func(TrapDetails) map[string]string) func(Attribute) map[string]string {
	return func(a Attribute) map[string]string {
		n := a.(*Notice)
		if err := d.UnmarshalBinary(n.Details[:]); err != nil {
			panic(err)
		}
		var again [NoticeDetailsSize]byte
		if err := d.Encode(&again); err != nil || again != n.Details {
			panic(fmt.Sprintf("details %x encoded as %x (%v)", n.Details, again, err))
		}
		m := details(d)
		m["IsGeneric"] = boolean(n.IsGeneric)
		m["Type"] = num(n.Type)
		m["ProducerType/VendorID"] = num(n.Producer)
		m["TrapNumber/DeviceID"] = num(n.TrapNumber)
		m["IssuerLID"] = num(n.IssuerLID)
		m["NoticeToggle"] = boolean(n.NoticeToggle)
		m["NoticeCount"] = num(n.NoticeCount)
		return m
	}
}

func gidDetailsValues(d TrapDetails) map[string]string {
	gid := d.(*GIDDetails).GID
	return map[string]string{"GIDADDR": long(gid[:])}
}

func pathDetailsValues(d TrapDetails) map[string]string {
	p := d.(*PathDetails)
	return map[string]string{"COMP_MASK": num(p.ComponentMask), "WAIT_FOR_REPATH": boolean(p.WaitForRepath)}
}

func linkStateDetailsValues(d TrapDetails) map[string]string {
	return map[string]string{"LIDADDR": num(d.(*LinkStateDetails).LID)}
}

func portDetailsValues(d TrapDetails) map[string]string {
	p := d.(*PortDetails)
	return map[string]string{"LIDADDR": num(p.LID), "PORTNO": num(p.Port)}
}

func localChangeDetailsValues(d TrapDetails) map[string]string {
	c := d.(*LocalChangeDetails)
	return map[string]string{
		"LIDADDR":                num(c.LID),
		"OtherLocalChanges":      boolean(c.OtherLocalChanges),
		"CAPABILITYMASK":         num(c.CapabilityMask),
		"CAPABILITYMASK2":        num(c.CapabilityMask2),
		"CapabilityMask2Change":  boolean(c.CapabilityMask2Change),
		"HierarchyInfoChange":    boolean(c.HierarchyInfoChange),
		"SMPriorityChange":       boolean(c.SMPriorityChange),
		"LinkSpeedEnabledChange": boolean(c.LinkSpeedEnabledChange),
		"LinkWidthEnabledChange": boolean(c.LinkWidthEnabledChange),
		"NodeDescriptionChange":  boolean(c.NodeDescriptionChange),
	}
}

func systemImageGUIDDetailsValues(d TrapDetails) map[string]string {
	s := d.(*SystemImageGUIDDetails)
	return map[string]string{"LIDADDR": num(s.LID), "SYSTEMIMAGEGUID": num(s.SystemImageGUID)}
}

func badMKeyDetailsValues(d TrapDetails) map[string]string {
	b := d.(*BadMKeyDetails)
	return map[string]string{
		"LIDADDR":            num(b.LID),
		"DRSLID":             num(b.DrSLID),
		"METHOD":             num(b.Method),
		"ATTRIBUTEID":        num(b.AttributeID),
		"ATTRIBUTEMODIFIER":  num(b.AttributeModifier),
		"MKEY":               num(b.MKey),
		"DRNotice":           boolean(b.DRNotice),
		"DRPathTruncated":    boolean(b.DRPathTruncated),
		"DRHopCount":         num(b.DRHopCount),
		"DRNoticeReturnPath": long(b.DRNoticeReturnPath[:]),
	}
}

func badKeyDetailsValues(d TrapDetails) map[string]string {
	b := d.(*BadKeyDetails)
	return map[string]string{
		"LIDADDR1": num(b.LID1),
		"LIDADDR2": num(b.LID2),
		"KEY":      num(b.Key),
		"SL":       num(b.SL),
		"QP1":      num(b.QP1),
		"QP2":      num(b.QP2),
		"GIDADDR1": long(b.GID1[:]),
		"GIDADDR2": long(b.GID2[:]),
	}
}

func switchBadPKeyDetailsValues(d TrapDetails) map[string]string {
	s := d.(*SwitchBadPKeyDetails)
	return map[string]string{
		"DataValid": num(s.DataValid),
		"LIDADDR1":  num(s.LID1),
		"LIDADDR2":  num(s.LID2),
		"PKEY":      num(s.PKey),
		"SL":        num(s.SL),
		"QP1":       num(s.QP1),
		"QP2":       num(s.QP2),
		"GIDADDR1":  long(s.GID1[:]),
		"GIDADDR2":  long(s.GID2[:]),
		"SWLIDADDR": num(s.SwitchLID),
		"PORTNO":    num(s.Port),
	}
}
