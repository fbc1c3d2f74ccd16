package sa

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
)

func TestAttributeName(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range codecs {
		r := c.make()
		name := AttributeName(r.ID())
		if name != strings.TrimPrefix(typeName(r), "*sa.") {
			t.Errorf("%T is called %q", r, name)
		}
		seen[name] = true
	}
	seen[AttributeName(mad.AttrClassPortInfo)] = true
	if len(seen) != 21 {
		t.Errorf("%d names, want 21", len(seen))
	}
	if got := AttributeName(0x00FF); got != "attribute 0x00ff" {
		t.Errorf("unknown: %q", got)
	}
}

// The positions of components: of every record the last, and those behind
// reserved ones.
func TestComponents(t *testing.T) {
	for _, test := range []struct {
		name string
		mask ComponentMask
		bit  uint
	}{
		{"NodeRecord.LID", NodeRecordLID, 0},
		{"NodeRecord.BaseVersion", NodeRecordBaseVersion, 2},
		{"NodeRecord.NodeGUID", NodeRecordNodeGUID, 7},
		{"NodeRecord.NodeDescription", NodeRecordNodeDescription, 14},
		{"PortInfoRecord.EndportLID", PortInfoRecordEndportLID, 0},
		{"PortInfoRecord.MKey", PortInfoRecordMKey, 3},
		{"PortInfoRecord.LID", PortInfoRecordLID, 5},
		{"PortInfoRecord.CapabilityMask", PortInfoRecordCapabilityMask, 7},
		{"PortInfoRecord.PortState", PortInfoRecordPortState, 15},
		{"PortInfoRecord.LMC", PortInfoRecordLMC, 20},
		{"PortInfoRecord.MTUCap", PortInfoRecordMTUCap, 31},
		{"PortInfoRecord.PartitionEnforcementInbound", PortInfoRecordPartitionEnforcementInbound, 35},
		{"PortInfoRecord.SubnetTimeOut", PortInfoRecordSubnetTimeOut, 45},
		{"PortInfoRecord.RespTimeValue", PortInfoRecordRespTimeValue, 47},
		{"PortInfoRecord.MaxCreditHint", PortInfoRecordMaxCreditHint, 50},
		{"PortInfoRecord.LinkRoundTripLatency", PortInfoRecordLinkRoundTripLatency, 52},
		{"PortInfoRecord.LinkSpeedExtEnabled", PortInfoRecordLinkSpeedExtEnabled, 57},
		{"SLToVLMappingTableRecord.OutputPortNum", SLToVLMappingTableRecordOutputPortNum, 2},
		{"SwitchInfoRecord.LinearFDBCap", SwitchInfoRecordLinearFDBCap, 2},
		{"SwitchInfoRecord.MulticastFDBTop", SwitchInfoRecordMulticastFDBTop, 20},
		{"LinearForwardingTableRecord.BlockNum", LinearForwardingTableRecordBlockNum, 1},
		{"RandomForwardingTableRecord.BlockNum", RandomForwardingTableRecordBlockNum, 1},
		{"MulticastForwardingTableRecord.Position", MulticastForwardingTableRecordPosition, 1},
		{"MulticastForwardingTableRecord.BlockNum", MulticastForwardingTableRecordBlockNum, 3},
		{"SMInfoRecord.GUID", SMInfoRecordGUID, 2},
		{"SMInfoRecord.SMState", SMInfoRecordSMState, 6},
		{"LinkRecord.ToPort", LinkRecordToPort, 2},
		{"LinkRecord.ToLID", LinkRecordToLID, 3},
		{"GUIDInfoRecord.BlockNum", GUIDInfoRecordBlockNum, 1},
		{"GUIDInfoRecord.GUID0", GUIDInfoRecordGUID0, 4},
		{"GUIDInfoRecord.GUID7", GUIDInfoRecordGUID7, 11},
		{"ServiceRecord.ServicePKey", ServiceRecordServicePKey, 2},
		{"ServiceRecord.ServiceLease", ServiceRecordServiceLease, 4},
		{"ServiceRecord.ServiceData8N1", ServiceRecordServiceData8N1, 7},
		{"ServiceRecord.ServiceData16N1", ServiceRecordServiceData16N1, 23},
		{"ServiceRecord.ServiceData32N1", ServiceRecordServiceData32N1, 31},
		{"ServiceRecord.ServiceData64N2", ServiceRecordServiceData64N2, 36},
		{"PKeyTableRecord.PortNum", PKeyTableRecordPortNum, 2},
		{"PathRecord.DGID", PathRecordDGID, 2},
		{"PathRecord.RawTraffic", PathRecordRawTraffic, 6},
		{"PathRecord.FlowLabel", PathRecordFlowLabel, 8},
		{"PathRecord.NumbPath", PathRecordNumbPath, 12},
		{"PathRecord.PKey", PathRecordPKey, 13},
		{"PathRecord.SL", PathRecordSL, 15},
		{"PathRecord.PacketLifeTime", PathRecordPacketLifeTime, 21},
		{"VLArbitrationTableRecord.BlockNum", VLArbitrationTableRecordBlockNum, 2},
		{"MCMemberRecord.PortGID", MCMemberRecordPortGID, 1},
		{"MCMemberRecord.TClass", MCMemberRecordTClass, 6},
		{"MCMemberRecord.PKey", MCMemberRecordPKey, 7},
		{"MCMemberRecord.JoinState", MCMemberRecordJoinState, 16},
		{"MCMemberRecord.ProxyJoin", MCMemberRecordProxyJoin, 17},
		{"MultiPathRecord.FlowLabel", MultiPathRecordFlowLabel, 2},
		{"MultiPathRecord.PKey", MultiPathRecordPKey, 7},
		{"MultiPathRecord.PacketLifeTime", MultiPathRecordPacketLifeTime, 15},
		{"MultiPathRecord.SGIDCount", MultiPathRecordSGIDCount, 19},
		{"MultiPathRecord.ServiceID56LSB", MultiPathRecordServiceID56LSB, 21},
		{"InformInfoRecord.GID", InformInfoRecordGID, 3},
		{"InformInfoRecord.IsGeneric", InformInfoRecordIsGeneric, 7},
		{"InformInfoRecord.QPN", InformInfoRecordQPN, 11},
		{"InformInfoRecord.RespTimeValue", InformInfoRecordRespTimeValue, 13},
		{"InformInfoRecord.Producer", InformInfoRecordProducer, 15},
	} {
		if test.mask != 1<<test.bit {
			t.Errorf("%s is %#x, want bit %d", test.name, uint64(test.mask), test.bit)
		}
	}
}

func TestHas(t *testing.T) {
	m := PathRecordDGID | PathRecordSGID
	if !m.Has(PathRecordDGID) || !m.Has(m) || m.Has(PathRecordDGID|PathRecordDLID) {
		t.Error("ComponentMask.Has")
	}
	if s := JoinFull | JoinSendOnlyNon; !s.Has(JoinFull) || s.Has(JoinNon) || s.Has(JoinFull|JoinNon) {
		t.Error("JoinState.Has")
	}
}
