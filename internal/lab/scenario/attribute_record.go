package scenario

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/sa"
)

// Record is a record of subnet administration, or an attribute of performance
// management.
type Record interface {
	UnmarshalBinary(data []byte) error
	AppendBinary(b []byte) ([]byte, error)
}

// RecordKind is a record that a script can name.
type RecordKind struct {
	Name string
	New  func() sa.Record
	// components are those of its fields that a query can be about.
	components map[string]sa.ComponentMask
}

// Component is the bit of a field, named as Field names it, in the component
// mask of a query.
func (k RecordKind) Component(field string) (sa.ComponentMask, bool) {
	bit, ok := k.components[plain(field)]
	return bit, ok
}

// components numbers names as the components of a record; an empty name is one
// that no script can name.
func components(names ...string) map[string]sa.ComponentMask {
	out := map[string]sa.ComponentMask{}
	for i, name := range names {
		if name != "" {
			out[plain(name)] = 1 << i
		}
	}
	return out
}

// properties are the components that PathRecord and MultiPathRecord have in
// common.
var properties = []string{"RawTraffic", "", "FlowLabel", "HopLimit", "TClass", "Reversible", "NumbPath", "PKey", "QoSClass", "SL",
	"MTUSelector", "MTU", "RateSelector", "Rate", "PacketLifeTimeSelector", "PacketLifeTime"}

// queried are the components of records that a query can be about, as Field names
// them.
func queried() map[mad.AttributeID]map[string]sa.ComponentMask {
	table := components("LID", "BlockNum")
	path := components(append([]string{"", "", "DGID", "SGID", "DLID", "SLID"}, properties...)...)
	path["serviceid"] = sa.PathRecordServiceID8MSB | sa.PathRecordServiceID56LSB
	many := components(append(append([]string{}, properties...), "", "", "", "SGIDs", "DGIDs")...)
	return map[mad.AttributeID]map[string]sa.ComponentMask{
		sa.AttrNodeRecord:       components("LID", "", "", "", "NodeInfo.NodeType", "", "", "NodeInfo.NodeGUID", "NodeInfo.PortGUID"),
		sa.AttrPortInfoRecord:   components("EndportLID", "PortNum"),
		sa.AttrSwitchInfoRecord: components("LID"),
		sa.AttrLinkRecord:       components("FromLID", "FromPort", "ToPort", "ToLID"),
		sa.AttrPathRecord:       path,
		sa.AttrMultiPathRecord:  many,
		sa.AttrMCMemberRecord: components("MGID", "PortGID", "QKey", "MLID", "MTUSelector", "MTU",
			"TClass", "PKey", "RateSelector", "Rate", "PacketLifeTimeSelector", "PacketLifeTime", "SL", "FlowLabel", "HopLimit", "Scope", "JoinState", "ProxyJoin"),
		sa.AttrServiceRecord:                  components("ServiceID", "ServiceGID", "ServicePKey", "", "ServiceLease", "ServiceKey", "ServiceName", "ServiceData8.0"),
		sa.AttrInformInfoRecord:               components("SubscriberGID"),
		sa.AttrPKeyTableRecord:                components("LID", "BlockNum", "PortNum"),
		sa.AttrGUIDInfoRecord:                 table,
		sa.AttrSMInfoRecord:                   components("LID"),
		sa.AttrLinearForwardingTableRecord:    table,
		sa.AttrMulticastForwardingTableRecord: components("LID", "Position", "", "BlockNum"),
	}
}

// FindRecord finds a record by its name.
func FindRecord(text string) (RecordKind, error) {
	var known []string
	for _, d := range sa.Attributes() {
		if plain(d.Name) == plain(text) {
			return RecordKind{d.Name, d.New, queried()[d.ID]}, nil
		}
		known = append(known, d.Name)
	}
	return RecordKind{}, fmt.Errorf("%q: want a record: %s", text, strings.Join(known, ", "))
}

// FindCounters finds an attribute of performance management by its name.
func FindCounters(text string) (func() pm.Attribute, error) {
	var known []string
	for _, d := range pm.Attributes() {
		if plain(d.Name) == plain(text) {
			return d.New, nil
		}
		known = append(known, d.Name)
	}
	return nil, fmt.Errorf("%q: want one of %s", text, strings.Join(known, ", "))
}
