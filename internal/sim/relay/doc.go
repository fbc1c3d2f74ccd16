// Package relay is what a simulated switch or router decides about one packet,
// by the tables of its agent (package sma). It holds no state and moves nothing:
// queues, virtual lanes and links belong to the caller.
//
//	Read     the headers that decide, or Malformed
//	Enter    what the port of arrival asks: state, virtual lane, raw filter, P_Key
//	Exit     where a unicast packet goes, by forwarding table
//	Exits    where copies of a multicast packet go
//	Leave    what the port of departure asks: state, raw filter, P_Key, virtual lane, MTU
//	Cross    where a router sends a packet with a GRH, by subnet prefix
//	Readdress, Shift   what a router and a virtual lane change do to the octets
//
// The calls come in that order, and the first that does not say Pass ends the
// packet. So a packet with a foreign key is refused before any look at a
// forwarding table, and the table of the exit is asked once the exit is known.
//
// # Keys
//
// A packet passes a port that enforces partitions when its P_Key matches any
// entry of the port's one table, which serves both directions: bases equal and
// not zero, and not both limited. Lane 15 is exempt and raw packets have no key;
// for those there are the raw filters. The bits of PortInfo decide: the agent
// does not keep bits that the device has not the means for.
//
// A unicast packet has one exit at most, whatever its LID. Only a multicast LID
// makes copies.
package relay
