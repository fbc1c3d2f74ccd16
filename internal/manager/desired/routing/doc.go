// Package routing computes the unicast forwarding tables of a subnet.
//
// In: a snapshot, the LIDs of its end ports, and the name of a routing engine. Out:
// for each switch the exit port of every LID, port 0 of the switches included,
// over links that are trained at both ends. The same input always gives the
// same tables, and the order of discovery does not matter. What cannot be
// reached is left unrouted and reported: switches without a link
// to the others, and end ports behind a link that is not trained.
//
// MinHop takes a shortest path, and can deadlock where the cabling has loops.
// UpDown, the default, cannot: all switches are in one order and no packet
// goes up again after it went down. The order begins with a switch farthest
// from any CA, or in the middle where all have CAs, and grows along the
// cables. So each switch but the first of its component has a higher neighbour,
// which makes every port reachable from every other, switches included, and the
// spines and cores of a fat tree all carry their share, with broken links
// too. (A core switch with CAs of its own is the exception: in a tree of three
// levels it may carry nothing between pods.)
//
// Among exits of equal length the tables balance the routes from CA to CA
// that cross each link, with equal weight for every pair, and after that the
// number of LIDs. The LIDs of one port take different links where there are
// different ones.
//
// Enter puts the tables into the form that each switch has: linear, or random
// by way of RFT.
package routing
