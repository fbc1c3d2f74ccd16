package sa

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// SwitchInfoRecordSize is the length of SwitchInfoRecord in bytes.
const SwitchInfoRecordSize = 24

// SwitchInfoRecord is the SwitchInfo of one switch.
type SwitchInfoRecord struct {
	LID        ib.LID         `ib:"0,16"`
	SwitchInfo smp.SwitchInfo `ib:"32,160"`

	reserved2 uint16 `ib:"16,16"`
}

// AttrSwitchInfoRecord is the number of SwitchInfoRecord.
const AttrSwitchInfoRecord mad.AttributeID = 0x0014

var switchInfoRecordFormat = add[SwitchInfoRecord](Descriptor{ID: AttrSwitchInfoRecord, Size: SwitchInfoRecordSize})

// ID is AttrSwitchInfoRecord.
func (*SwitchInfoRecord) ID() mad.AttributeID { return AttrSwitchInfoRecord }

// String prints the fields; reserved bits are left out.
func (r SwitchInfoRecord) String() string { return layout.Print(r) }

// UnmarshalBinary reads SwitchInfoRecordSize bytes.
func (r *SwitchInfoRecord) UnmarshalBinary(data []byte) error {
	return switchInfoRecordFormat.Unmarshal(r, data)
}

// AppendBinary appends the record.
func (r *SwitchInfoRecord) AppendBinary(b []byte) ([]byte, error) {
	return switchInfoRecordFormat.Append(b, r)
}

// The components of SwitchInfoRecord.
const (
	SwitchInfoRecordLID ComponentMask = 1 << iota
	_                                 // reserved
	SwitchInfoRecordLinearFDBCap
	SwitchInfoRecordRandomFDBCap
	SwitchInfoRecordMulticastFDBCap
	SwitchInfoRecordLinearFDBTop
	SwitchInfoRecordDefaultPort
	SwitchInfoRecordDefaultMulticastPrimaryPort
	SwitchInfoRecordDefaultMulticastNotPrimaryPort
	SwitchInfoRecordLifeTimeValue
	SwitchInfoRecordPortStateChange
	SwitchInfoRecordOptimizedSLToVLMappingProgramming
	SwitchInfoRecordLIDsPerPort
	SwitchInfoRecordPartitionEnforcementCap
	SwitchInfoRecordInboundEnforcementCap
	SwitchInfoRecordOutboundEnforcementCap
	SwitchInfoRecordFilterRawInboundCap
	SwitchInfoRecordFilterRawOutboundCap
	SwitchInfoRecordEnhancedPort0
	_ // reserved
	SwitchInfoRecordMulticastFDBTop
)
