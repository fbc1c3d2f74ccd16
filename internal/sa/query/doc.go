// Package query answers queries of subnet administration about what the subnet
// is like: one file for each family of records.
//
// Find is given who asks (view.Asker), the attribute, the component mask and
// the octets of the record in the query, and calls back with the octets of every
// record that matches and that the asker may see, in a fixed order. Components
// are compared as octets against the record as the asker gets it: what is kept
// from an asker cannot be guessed by asking for it.
//
//	NodeRecord, PortInfoRecord, SwitchInfoRecord, SMInfoRecord, LinkRecord
//	P_KeyTableRecord                            with trust only
//	Linear-, Random-, MulticastForwardingTableRecord
//	SLtoVLMappingTableRecord, VLArbitrationTableRecord, GUIDInfoRecord
//	PathRecord, MultiPathRecord, TraceRecord    in path.go, trace.go
//
// Without trust the M_Key and SM_Key are zero in every record; forwarding tables
// show the LIDs of ports and groups that the asker sees and nothing of others.
package query
