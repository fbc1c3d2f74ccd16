// Package mcast computes the multicast forwarding tables of a subnet.
//
// In: a snapshot, the groups with their multicast LIDs and members, and who may
// be in which partition. Out: for each switch the ports by which packets of
// each group leave it, to be entered into a observed.Desired, and what cannot be
// had and why. The same input always gives the same tables, and the order of
// discovery does not matter.
//
// Every group has a tree of switches and cables that joins the switches of its
// members, so that packets cannot go round. A port is in the table of a switch
// when a member that receives is behind it: at its other end, or farther down
// the tree. So what a member sends reaches every other member that receives
// once, and nobody else; members that only send are joined to the tree and get
// nothing. Port 0 is in the table only when the switch itself is a member.
//
// A member that lost the partition is left out, as is one whose GUID two
// devices claim, or one that has no trained link.
//
// Trees grow out of what the switches hold already, as the snapshot shows it:
// cables that still serve stay, whoever joins is joined by a shortest path to
// the tree, and branches end where the last member left. Trees that begin from
// nothing spread over equal paths by their multicast LID.
//
// A switch carries a group only if its table has room for the group's multicast
// LID. Packets for any other are to go nowhere: the ports by which switches send
// what their table does not know are wanted closed.
//
// One multicast LID belongs to one group. Input that says otherwise is refused
// as a whole.
package mcast
