// Package kernel does for one port what Linux does between a program that opened
// /dev/infiniband/umadN and the port's two management queue pairs (ib_umad and
// ib_mad): agents, transaction identifiers, answers and time-outs, RMPP.
//
//	Layer   one port: New, Open, Next, Receive, Deadline, Expire, Remove
//	File    one open umadN: Ioctl, Write, Read, Poll, Close
//	Packet  a datagram and where it goes to or comes from
//
// A Layer is a value without a clock. In: what programs call, datagrams that
// arrive (Receive) and time (Expire). Out: datagrams to send (Next), in the
// order in which they were written, and what Read gives. Nothing waits: a Read
// of an empty file and a second OpenIsSM answer EAGAIN, and Ready tells which
// files have news, so that the shell can let its callers wait.
//
// # Requests
//
// The kernel owns the upper half of a request's transaction identifier: it puts
// the agent's number there, which is how an answer finds its agent. Within the
// agent an answer finds its request by transaction, class and path; who does
// not find one is dropped. A request with a time-out ends exactly once: with
// its answer, or with its header and 24 octets read back with ETIMEDOUT after
// all retries; without a word only when the agent or the file goes, or when the
// other side ends an RMPP transfer. Its clock starts when Next hands it out. A
// second request with the same transaction and class is refused meanwhile.
//
// A datagram that is no answer goes to the agent that registered its class,
// version and method (and OUI). When there is none a Get or Set is answered
// with UnsupportedAttrib, the rest is dropped. What the adapter itself answers
// (its SMA and PMA) never gets here: that is for whoever calls Receive.
//
// # RMPP
//
// An agent with an RMPP version and without FlagUserRMPP writes and reads whole
// messages of subnet administration, which package rmpp cuts and joins. Other
// classes have other heads; their long messages are refused and their segments
// delivered one by one.
//
// # Limits
//
// The kernel bounds nothing but agents; here a file holds MaxMessages
// datagrams, asked and unread together (Write then answers ENOMEM), and
// datagrams that nobody asked for are dropped from half of that.
package kernel
