package smp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Every field that is narrower than its type refuses the next larger value.
// That it takes its largest one is shown by TestBitFlips.
func TestTooWide(t *testing.T) {
	tests := []struct {
		field string
		a     Attribute
	}{
		{"Notice.Type", &Notice{Type: 1 << 7}},
		{"Notice.Producer", &Notice{Producer: 1 << 24}},
		{"Notice.NoticeCount", &Notice{NoticeCount: 1 << 15}},
		{"NodeInfo.VendorID", &NodeInfo{VendorID: 1 << 24}},
		{"SwitchInfo.LifeTimeValue", &SwitchInfo{LifeTimeValue: 1 << 5}},
		{"SwitchInfo.OptimizedSLToVLMappingProgramming", &SwitchInfo{OptimizedSLToVLMappingProgramming: 1 << 2}},
		{"SLToVLMappingTable.VLs", &SLToVLMappingTable{VLs: [SLCount]ib.VL{7: 1 << 4}}},
		{"VLArbitrationTable.VL", &VLArbitrationTable{Entries: [VLArbitrationPerPart]VLArbitrationEntry{31: {VL: 1 << 4}}}},
		{"RandomForwardingTable.LMC", &RandomForwardingTable{Entries: [RandomEntriesPerBlock]RandomEntry{15: {LMC: 1 << 3}}}},
		{"SMInfo.Priority", &SMInfo{Priority: 1 << 4}},
		{"SMInfo.SMState", &SMInfo{SMState: 1 << 4}},
		{"PortInfo.LinkSpeedSupported", &PortInfo{LinkSpeedSupported: 1 << 4}},
		{"PortInfo.PortState", &PortInfo{PortState: 1 << 4}},
		{"PortInfo.PortPhysicalState", &PortInfo{PortPhysicalState: 1 << 4}},
		{"PortInfo.LinkDownDefaultState", &PortInfo{LinkDownDefaultState: 1 << 4}},
		{"PortInfo.MKeyProtectBits", &PortInfo{MKeyProtectBits: 1 << 2}},
		{"PortInfo.LMC", &PortInfo{LMC: 1 << 3}},
		{"PortInfo.LinkSpeedActive", &PortInfo{LinkSpeedActive: 1 << 4}},
		{"PortInfo.LinkSpeedEnabled", &PortInfo{LinkSpeedEnabled: 1 << 4}},
		{"PortInfo.NeighborMTU", &PortInfo{NeighborMTU: 1 << 4}},
		{"PortInfo.MasterSMSL", &PortInfo{MasterSMSL: 1 << 4}},
		{"PortInfo.VLCap", &PortInfo{VLCap: 1 << 4}},
		{"PortInfo.InitType", &PortInfo{InitType: 1 << 4}},
		{"PortInfo.InitTypeReply", &PortInfo{InitTypeReply: 1 << 4}},
		{"PortInfo.MTUCap", &PortInfo{MTUCap: 1 << 4}},
		{"PortInfo.VLStallCount", &PortInfo{VLStallCount: 1 << 3}},
		{"PortInfo.HOQLife", &PortInfo{HOQLife: 1 << 5}},
		{"PortInfo.OperationalVLs", &PortInfo{OperationalVLs: 1 << 4}},
		{"PortInfo.MulticastPKeyTrapSuppressionEnabled", &PortInfo{MulticastPKeyTrapSuppressionEnabled: 1 << 2}},
		{"PortInfo.SubnetTimeOut", &PortInfo{SubnetTimeOut: 1 << 5}},
		{"PortInfo.RespTimeValue", &PortInfo{RespTimeValue: 1 << 5}},
		{"PortInfo.LocalPhyErrors", &PortInfo{LocalPhyErrors: 1 << 4}},
		{"PortInfo.OverrunErrors", &PortInfo{OverrunErrors: 1 << 4}},
		{"PortInfo.LinkSpeedExtActive2", &PortInfo{LinkSpeedExtActive2: 1 << 2}},
		{"PortInfo.LinkSpeedExtSupported2", &PortInfo{LinkSpeedExtSupported2: 1 << 2}},
		{"PortInfo.LinkSpeedExtEnabled2", &PortInfo{LinkSpeedExtEnabled2: 1 << 3}},
		{"PortInfo.LinkRoundTripLatency", &PortInfo{LinkRoundTripLatency: 1 << 24}},
		{"PortInfo.LinkSpeedExtActive", &PortInfo{LinkSpeedExtActive: 1 << 4}},
		{"PortInfo.LinkSpeedExtSupported", &PortInfo{LinkSpeedExtSupported: 1 << 4}},
		{"PortInfo.LinkSpeedExtEnabled", &PortInfo{LinkSpeedExtEnabled: 1 << 5}},
	}
	for _, test := range tests {
		t.Run(test.field, func(t *testing.T) {
			b, err := test.a.AppendBinary([]byte("before"))
			if err == nil || !strings.Contains(err.Error(), test.field+":") {
				t.Errorf("error %v, want one about %s", err, test.field)
			}
			if string(b) != "before" {
				t.Errorf("returned %q", b)
			}
			dst := [mad.DataSize]byte{1, 2, 3}
			want := dst
			if test.a.Encode(&dst) == nil || dst != want {
				t.Errorf("dst changed to %x", dst)
			}
		})
	}
}

func TestTooWideDetails(t *testing.T) {
	tests := []struct {
		field string
		d     TrapDetails
	}{
		{"BadMKeyDetails.DRHopCount", &BadMKeyDetails{DRHopCount: 1 << 6}},
		{"BadKeyDetails.SL", &BadKeyDetails{SL: 1 << 4}},
		{"BadKeyDetails.QP1", &BadKeyDetails{QP1: 1 << 24}},
		{"BadKeyDetails.QP2", &BadKeyDetails{QP2: 1 << 24}},
		{"SwitchBadPKeyDetails.SL", &SwitchBadPKeyDetails{SL: 1 << 4}},
		{"SwitchBadPKeyDetails.QP1", &SwitchBadPKeyDetails{QP1: 1 << 24}},
		{"SwitchBadPKeyDetails.QP2", &SwitchBadPKeyDetails{QP2: 1 << 24}},
	}
	for _, test := range tests {
		t.Run(test.field, func(t *testing.T) {
			dst := [NoticeDetailsSize]byte{1, 2, 3}
			want := dst
			err := test.d.Encode(&dst)
			if err == nil || !strings.Contains(err.Error(), test.field+":") {
				t.Errorf("error %v, want one about %s", err, test.field)
			}
			if dst != want {
				t.Errorf("dst changed to %x", dst)
			}
			if _, err := NewTrap(TrapBadPKey, ProducerCA, 1, test.d); err == nil {
				t.Error("NewTrap: no error")
			}
		})
	}
}

func TestAppendBinaryKeepsPrefix(t *testing.T) {
	b, err := new(LEDInfo).AppendBinary([]byte("before"))
	if err != nil || len(b) != len("before")+mad.DataSize || !bytes.HasPrefix(b, []byte("before")) {
		t.Errorf("%q, %v", b, err)
	}
}
