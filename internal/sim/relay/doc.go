// Package relay decides what a simulated switch or router does with one packet,
// by the tables of its agent (package sma). It holds no state and moves nothing:
// queues, virtual lanes and links belong to the caller.
//
//	Read     the headers that decide, or Malformed
//	Enter    the checks of the ingress port: state, virtual lane, raw filter, P_Key
//	Exit     the egress port of a unicast packet, by forwarding table
//	Exits    the egress ports of a multicast packet
//	Leave    the checks of the egress port: state, raw filter, P_Key, virtual lane, MTU
//	Cross    where a router sends a packet with a GRH, by subnet prefix
//	Readdress, Shift   how a router and a virtual lane change alter the bytes
//
// The calls come in that order, and the first result other than Pass ends the
// packet. So a packet with a foreign key is refused before any lookup in a
// forwarding table, and the table of the exit is checked once the exit is known.
//
// # Keys
//
// A packet passes a port that enforces partitions when its P_Key matches any
// entry of the port's one table, which serves both directions: bases equal and
// not zero, and not both limited. VL 15 is exempt and raw packets have no key;
// for those there are the raw filters. The bits of PortInfo decide: the agent
// does not keep bits for which the device lacks the capability.
//
// A unicast packet has at most one exit, whatever its LID. Only a multicast LID
// makes copies.
package relay
