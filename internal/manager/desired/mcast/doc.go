// Package mcast computes the multicast forwarding tables of a subnet.
//
// In: a snapshot, the groups with their multicast LIDs and members, and the members of
// the partitions. Out: for each switch the exit ports of
// each group, to be entered into an observed.Desired, and what is not
// possible and why. The same input always gives the same tables, and the order of
// discovery does not matter.
//
// Every group has a tree of switches and cables that connects the switches of its
// members, so packets cannot loop. A port is in the table of a switch
// when a receiving member is behind it: at its other end, or farther down
// the tree. So a packet of a member reaches every other receiving member
// once, and nobody else; send-only members are connected to the tree and receive
// nothing. Port 0 is in the table only when the switch itself is a member.
//
// A member that is not in the partition is left out, and so is one whose GUID two
// devices claim, or one without a trained link.
//
// Trees start from the present tables, as the snapshot shows
// them: cables that are still needed stay, a new member is connected by a shortest path
// to the tree, and branches end where the last member left. New trees
// use equal paths in turn, by their multicast LID.
//
// Where an order of the switches is given, a tree has one switch that stands above all
// others, and every other one neighbour that stands above it. Packets on trees of one order
// never wait for each other in a circle. Where cables that can carry the group leave no
// such tree, it has another one.
//
// A switch carries a group only if its table has room for the group's multicast
// LID. Packets to any other multicast LID are to be dropped: the default multicast
// ports of switches are closed.
//
// One multicast LID belongs to one group. Input to the contrary is refused
// as a whole.
package mcast
