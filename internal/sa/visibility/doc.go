// Package visibility is what subnet administration knows of a subnet and who may see
// what of it: an index over a snapshot and over the partitions that a policy
// came to.
//
//	New         index of a Snapshot, which must not lose nodes afterwards
//	At, Named   the end port with a LID, with a GID
//	Asker       who asks, and whether with the key of trust
//	Sees...     what an asker may learn of: end ports, ports of switches
//	Common      the keys that two ports can use with each other
//	Path        what the forwarding tables do with a packet
//
// A port's keys are those that both the policy gives it and its P_Key table, as
// it was read back, holds: what was not read does not count, a foreign key that
// somebody wrote does not, and where the two differ in membership the port is a
// limited member. Ports that claim the same GUID or LID have no keys
// at all.
//
// An asker sees an end port with which it shares a partition, one of the two at
// least as a full member, and itself. It sees a switch as it sees port 0 of it,
// and an external port of a switch it sees only when it also sees what is
// behind the cable. Trust does not widen this: it opens what is kept from
// others about ports that are seen.
//
// A path follows the forwarding tables as they were read, over links that are
// active, both there and back; its MTU and rate are the least on either way.
package visibility
