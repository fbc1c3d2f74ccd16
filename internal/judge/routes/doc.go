// Package routes judges the routing of a subnet: whether every end port reaches every
// other, whether packets go round, and whether links can wait for each other for ever.
//
// In: a snapshot, who has which LIDs, the forwarding tables, the mapping of service levels
// to virtual lanes, and the service levels of packets. Read takes all of them as the
// devices hold them, Wanted as a manager is about to write them. Out: a Result. The judge
// shares nothing with the engines that compute routes, and it changes nothing.
//
// A pair is a sending end port and a LID of another end port. A pair that cables connect
// has to be reached: each switch on the way has an exit for the LID, over a link that is
// trained at both ends, and the last one leads to the port that has the LID. A pair that
// no cables connect is apart, which is not the fault of any routing.
//
// A credit loop is a circle of channels, each a link between switches and a virtual lane:
// packets that hold a buffer behind one channel wait for the next one, all the way round.
// A packet that leaves switch A by link x on lane v, and switch B behind it by link y on
// lane w, makes (x, v) depend on (y, w). Links to and from end ports are in no circle,
// since end ports take what arrives. Packets of multicast groups depend in the same way on
// every exit that their switch copies them to. The dependencies are exact: of those that
// packets really have, by the switch where they start, their level, and the entry port.
//
// Port 0 of switches sends and receives packets of general services on data lanes: it
// answers what CAs and routers and the manager ask, and asks nobody itself (Talk).
//
// The cost: for every LID each switch is looked at once. Where the ways to a switch are
// equally long for all of its LIDs, which a comparison shows, a LID costs one look-up for
// each switch. Memory is for each part of the work (Job.Part): 8 bytes for each link,
// direction and lane, and for each 64 links that the switch behind it has; one byte for
// each pair of switches, for those pairs whose second switch has LIDs of this part; and 72
// bytes for each switch.
package routes
