package attribute

import (
	"fmt"
	"strings"

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

func recordKinds() []RecordKind {
	table := components("LID", "BlockNum")
	path := components(append([]string{"", "", "DGID", "SGID", "DLID", "SLID"}, properties...)...)
	path["serviceid"] = sa.PathRecordServiceID8MSB | sa.PathRecordServiceID56LSB
	many := components(append(append([]string{}, properties...), "", "", "", "SGIDs", "DGIDs")...)
	return []RecordKind{
		{"NodeRecord", func() sa.Record { return new(sa.NodeRecord) },
			components("LID", "", "", "", "NodeInfo.NodeType", "", "", "NodeInfo.NodeGUID", "NodeInfo.PortGUID")},
		{"PortInfoRecord", func() sa.Record { return new(sa.PortInfoRecord) }, components("EndportLID", "PortNum")},
		{"SwitchInfoRecord", func() sa.Record { return new(sa.SwitchInfoRecord) }, components("LID")},
		{"LinkRecord", func() sa.Record { return new(sa.LinkRecord) }, components("FromLID", "FromPort", "ToPort", "ToLID")},
		{"PathRecord", func() sa.Record { return new(sa.PathRecord) }, path},
		{"MultiPathRecord", func() sa.Record { return new(sa.MultiPathRecord) }, many},
		{"MCMemberRecord", func() sa.Record { return new(sa.MCMemberRecord) }, components("MGID", "PortGID", "QKey", "MLID", "MTUSelector", "MTU",
			"TClass", "PKey", "RateSelector", "Rate", "PacketLifeTimeSelector", "PacketLifeTime", "SL", "FlowLabel", "HopLimit", "Scope", "JoinState", "ProxyJoin")},
		{"ServiceRecord", func() sa.Record { return new(sa.ServiceRecord) },
			components("ServiceID", "ServiceGID", "ServicePKey", "", "ServiceLease", "ServiceKey", "ServiceName", "ServiceData8.0")},
		{"InformInfo", func() sa.Record { return new(sa.InformInfo) }, nil},
		{"InformInfoRecord", func() sa.Record { return new(sa.InformInfoRecord) }, components("SubscriberGID")},
		{"PKeyTableRecord", func() sa.Record { return new(sa.PKeyTableRecord) }, components("LID", "BlockNum", "PortNum")},
		{"GUIDInfoRecord", func() sa.Record { return new(sa.GUIDInfoRecord) }, table},
		{"SMInfoRecord", func() sa.Record { return new(sa.SMInfoRecord) }, components("LID")},
		{"LinearForwardingTableRecord", func() sa.Record { return new(sa.LinearForwardingTableRecord) }, table},
		{"MulticastForwardingTableRecord", func() sa.Record { return new(sa.MulticastForwardingTableRecord) },
			components("LID", "Position", "", "BlockNum")},
	}
}

// FindRecord finds a record by its name.
func FindRecord(text string) (RecordKind, error) {
	var known []string
	for _, k := range recordKinds() {
		if plain(k.Name) == plain(text) {
			return k, nil
		}
		known = append(known, k.Name)
	}
	return RecordKind{}, fmt.Errorf("%q: want a record: %s", text, strings.Join(known, ", "))
}

// counters are the attributes of performance management that a script can name.
var counters = map[string]func() pm.Attribute{
	"PortCounters":         func() pm.Attribute { return new(pm.PortCounters) },
	"PortCountersExtended": func() pm.Attribute { return new(pm.PortCountersExtended) },
}

// FindCounters finds an attribute of performance management by its name.
func FindCounters(text string) (func() pm.Attribute, error) {
	for name, f := range counters {
		if plain(name) == plain(text) {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%q: want one of %s", text, Keys(counters))
}
