// Package server implements subnet administration as an engine: hosts query
// paths, nodes and services, join multicast groups and subscribe to events.
//
// The engine is a value. In: a subnet and its partitions (SetSubnet), packets
// (Receive), time (Expire), events that devices reported (Notice). Out: packets
// (Next), when it wants to be called again (Deadline), the state to store
// (State, whenever Version changes), and the multicast groups
// (Groups). It has no clock, socket or goroutine.
//
// Every request is answered, if only with a status: for a method or attribute that is
// not supported, an invalid query, an unknown requester. The
// exceptions are a request whose answer is already under way, and requests
// that arrive when the queue of answers is full. Before the first subnet is
// set, and while another manager is master, every answer is BUSY.
//
// The source LID identifies the requester. Refused are a global route header of another
// port, a partition key that the port does not have, and services, memberships
// or subscriptions on behalf of another port. Package visibility decides what a requester
// may see; package query answers queries about the subnet; package group keeps the rules
// of multicast groups.
//
// The SA_Key of a request makes it trusted. There is none by default, and then
// no request is trusted; a request with a wrong one is refused.
//
// Requesters have limits: queries use a token bucket that long answers
// drain faster. A repeated request whose answer is under way is
// dropped. A repeated request for a value that the server chooses (an MGID, an alias
// GUID) gets the same answer.
//
// # What a requester may see
//
// View decides what a requester may see of a subnet: it is an index of a
// snapshot and of the partitions of a policy.
//
//	New         index of a Snapshot, which must not lose nodes afterwards
//	At, Named   the end port with a LID, with a GID
//	Asker       the requester, and whether it is trusted
//	Sees...     what a requester may see: end ports, ports of switches
//	Common      the keys that two ports can use with each other
//	Path        the path of a packet by the forwarding tables
//
// A port's keys are those that both the policy gives it and its P_Key table, as
// it was read back, holds. A key that was not read does not count, nor does a foreign
// key that another manager wrote. Where the two differ in membership the port is a
// limited member. Ports that claim the same GUID or LID have no keys
// at all.
//
// A requester sees itself and an end port with which it shares a partition, if at least
// one of the two is a full member. It sees a switch as it sees its port 0,
// and an external port of a switch only when it also sees what is
// behind the cable. Trust does not widen this: it shows the hidden components
// of ports that are seen.
//
// A path follows the forwarding tables as they were read, over links that are
// active, in both directions; its MTU and rate are the lowest in either direction.
//
// # Queries
//
// Find answers SA queries for the records of a subnet:
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
package server
