// Package ibsimd serves a simulated fabric (package fabric) over the
// protocol of ibsim, so that programs that reach ibsim through libumad2sim
// reach it unmodified: opensm, the diagnostics, and ibwarden itself.
//
//	Listen    a fabric of a topology, and its sockets
//	Serve     answers clients until its context ends
//	Do        something with the fabric, between two turns of Serve; what comes
//	          of it has happened when it returns
//	Console   ibsim's console commands
//
// One goroutine, that of Serve, owns the clients and the sockets. The fabric is
// used in its turns and in those of Do, one at a time.
//
// # Clients
//
// There is a control socket and a data socket for each of ten clients, the most
// that the protocol has numbers for; the places of clients that died are found
// and given away. Clients may share an end port. A client that announced itself
// as a subnet manager, one at each node, gets SMInfo, traps and requests of
// subnet administration that arrive there, in the classes that every such
// client understands, and nothing else that it did not ask for: libumad2sim
// dies of a class that its program did not register.
//
// Everything is carried by the fabric, and meets there what comes by another
// door: subnet-management packets as such, general management datagrams as data
// packets between queue pairs 1, with P_Key, Q_Key, loss and delay. The protocol
// names no entry of the P_Key table: an answer leaves by the one that its request
// came by, anything else by the first whose partition the destination is in too.
// Of the datagrams that arrive, clients get the answers to their requests, and a
// manager requests of subnet administration.
//
// # What is owed to a client
//
// Every control request with a sender is answered, with an error when it makes
// no sense. Every request on the data socket is answered, or comes back with
// status 110 (no answer); traps, their repressing, and answers are not
// acknowledged. Answers bear the request's transaction identifier; in the
// fabric its upper 16 bits are the server's. An answer counts only from whom
// the request went to.
//
// Each client has a bounded number of requests under way and of packets not
// read; nothing is sent with waiting. What is too much comes back unanswered or
// is lost to that client alone.
//
// # Time
//
// With Config.RealTime the fabric's time is that of the clock, and a request
// that is not answered within AnswerTime comes back then. Without it time jumps
// while packets are under way, which costs a client no waiting, and follows the
// clock otherwise; a request comes back as soon as it is lost. A request that
// another client holds comes back after PeerTime of the clock.
package ibsimd
