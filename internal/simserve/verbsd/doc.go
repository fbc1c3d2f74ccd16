// Package verbsd takes the verbs calls of programs (package ib/verbs) and carries
// them out on the hosts of a simulated fabric.
//
//	New            a server for a simulator
//	Listen, Serve  its Unix socket
//	ServeConn      one connection, from wherever
//	Turn, Wait     for the simulator that calls it in its turns
//
// # Who may do what
//
// A connection opens the device of one host, once, and acts as that host from then
// on: no call names another. What it makes are objects of its own, known by handles
// that mean nothing on another connection. All of a connection is one protection
// domain of the end node, so that guessed R_Keys and numbers of EE contexts lead
// nowhere. Queue pairs 0 and 1 cannot be had. The socket is for root and for whoever
// runs the simulator; reserved Q_Keys are for root, whatever a request says of
// itself.
//
// # Limits
//
// Everything that a connection can pile up is bounded, see the constants: objects,
// octets, events, calls that wait. A message that makes no sense ends its
// connection, and with it all that was made there.
//
// # Time
//
// A call that waits returns when what it waits for is there, or its time is over.
// Where the simulator is a Passer, time passes because somebody waits; else it
// passes by itself and Turn wakes who waits.
package verbsd
