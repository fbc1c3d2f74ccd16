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
package server
