// Package routing computes the unicast forwarding tables of a subnet.
//
// In: a snapshot, the LIDs of its end ports, and the name of a routing engine. Out:
// for each switch the exit port of every LID, port 0 of the switches included,
// over links that are trained at both ends, and the virtual lanes that packets take.
// The same input always gives the
// same tables, and the order of discovery does not matter. What cannot be
// reached is left unrouted and reported: switches without a link
// to the others, and end ports behind a link that is not trained.
//
// The engines are packages below this one. Each is a pure function from graph.Input to
// graph.Routes, and has a row in the table of Compute.
//
// Enter puts the tables into the form that each switch has: linear, or random
// by way of RFT.
package routing
