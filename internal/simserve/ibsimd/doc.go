// Package ibsimd serves a simulated fabric (package fabric) over the
// protocol of ibsim, so that programs that use libumad2sim
// run on it unmodified: opensm, the diagnostics, and ibwarden itself.
//
//	Listen    a fabric of a topology, and its sockets
//	Serve     answers clients until its context ends
//	Do        calls a function on the fabric between two turns of Serve; when it
//	          returns, the effects have happened
//	Console   ibsim's console commands
//
// One goroutine, that of Serve, owns the clients and the sockets. The fabric is
// used in its turns and in those of Do, one at a time.
//
// # Clients
//
// There is a control socket and a data socket for each of ten clients, the most
// that the protocol has numbers for; slots of clients that died are
// found and reused. Clients may share an end port. A client that announced itself
// as a subnet manager, one at each node, gets SMInfo, traps and requests of
// subnet administration that arrive there, in the classes that every such
// client understands, and no other unsolicited packet: libumad2sim
// crashes on a class that its program did not register.
//
// The fabric carries everything, along with the packets of other
// interfaces: subnet management as SMPs, general management datagrams as data
// packets between queue pairs 1, with P_Key, Q_Key, loss and delay. The protocol
// has no P_Key index: an answer uses the index of its
// request, anything else the first one whose partition the destination is in too.
// Clients get the answers to their requests, and a
// manager also requests of subnet administration.
//
// # Guarantees to a client
//
// Every control request with a sender is answered, with an error if it is
// invalid. Every request on the data socket is answered, or returned with
// status 110 (no answer); traps, TrapRepress and answers are not
// acknowledged. Answers have the request's transaction identifier; in the
// fabric its upper 16 bits are the server's. An answer counts only from the port that
// the request was sent to.
//
// The number of requests in progress and of unread packets is bounded for each client;
// the server never blocks on a send. Requests beyond the bound are returned unanswered,
// and packets beyond it are lost to that client alone.
//
// # Time
//
// With Config.RealTime the fabric's time is that of the clock, and a request
// that is not answered within AnswerTime is returned then. Without it time jumps
// while packets are in flight, so that clients do not wait, and follows the
// clock otherwise; a request is returned as soon as it is lost. A request that
// another client holds is returned after PeerTime of the clock.
package ibsimd
