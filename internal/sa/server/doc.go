// Package server is subnet administration as an engine: hosts ask it for
// paths, nodes and services, join multicast groups and subscribe to events.
//
// The engine is a value. In: a subnet and its partitions (SetSubnet), packets
// (Receive), time (Expire), events that devices reported (Notice). Out: packets
// (Next), when it wants to be called again (Deadline), what has to outlive it
// (State, whenever Version changes), and groups for whoever computes multicast
// trees (Groups). It has no clock, socket or goroutine.
//
// Every request is answered, be it with a status: a method or attribute that is
// not supported, a query that makes no sense, a requester that is not known. The
// exceptions are a request whose answer is on its way already, and what comes
// when the queue of answers is full to the brim. Before the first subnet was
// set, and while another manager is master, everything is answered with BUSY.
//
// Who asks is told by the source LID; a global route header that names another
// port, a partition key that the port does not have, and services, memberships
// or subscriptions for somebody else's port are refused. What may be seen is the
// business of package view; queries about the subnet are answered by package
// record; groups keep their own rules in package group.
//
// The SA_Key opens what is kept from others. There is none by default, and then
// nobody is trusted; a request with a wrong one is refused.
//
// Requesters have limits, of queries by a bucket of tokens that long answers
// drain faster. A request that comes again while its answer is on the way is
// dropped; one for something that the server chooses (an MGID, an alias GUID)
// that comes again is answered as it was.
package server
