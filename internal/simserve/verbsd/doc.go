// Package verbsd serves the verbs of hosts of a simulated fabric to external programs
// (package ib/verbs).
//
//	New            a server for a simulator
//	Listen, Serve  its Unix socket
//	ServeConn      one connection of any kind
//	Turn, Wait     for the simulator that calls it in its turns
//
// # Permissions
//
// A connection opens the device of one host, once, and acts as that host from then
// on: no call names another. Its objects are known by handles
// that mean nothing on another connection. Each connection is one protection
// domain of the end node, so that guessed R_Keys and EE context numbers are
// useless. Queue pairs 0 and 1 are not available. The socket is for root and the user
// that runs the simulator; reserved Q_Keys are for root, whatever a request
// claims.
//
// # Limits
//
// Every resource of a connection is bounded, see the constants: objects,
// bytes, events, waiting calls. An invalid message ends its
// connection and destroys all its objects.
//
// # Time
//
// A call that waits returns when its event has happened or its time-out has expired.
// If the simulator is a Passer, waiting advances time; otherwise time
// advances by itself and Turn wakes waiting calls.
package verbsd
