// Package visibility decides what a requester may see of a subnet: it is an index of a
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
package visibility
