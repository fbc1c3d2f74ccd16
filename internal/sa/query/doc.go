// Package query answers SA queries for the records of a subnet:
// one file for each family of records.
//
// Find takes the requester (visibility.Asker), the attribute, the component mask and
// the bytes of the record in the query, and calls back with the bytes of every
// record that matches and that the requester may see, in a fixed order. Components
// are compared as bytes with the record as the requester would receive it, so a query
// cannot be used to guess hidden components.
//
//	NodeRecord, PortInfoRecord, SwitchInfoRecord, SMInfoRecord, LinkRecord
//	P_KeyTableRecord                            for trusted queries only
//	Linear-, Random-, MulticastForwardingTableRecord
//	SLtoVLMappingTableRecord, VLArbitrationTableRecord, GUIDInfoRecord
//	PathRecord, MultiPathRecord, TraceRecord    in path.go, trace.go
//
// Without trust the M_Key and SM_Key are zero in every record; forwarding tables
// show the LIDs of ports and groups that the requester sees and no others.
package query
