// Package kernel models the Linux user MAD layer (ib_umad and ib_mad) of one port,
// between a program that opened /dev/infiniband/umadN and the port's two management
// queue pairs: agents, transaction identifiers, answers and time-outs, RMPP.
//
//	Layer   one port: New, Open, Next, Receive, Deadline, Expire, Remove
//	File    one open umadN: Ioctl, Write, Read, Poll, Close
//	Packet  a datagram and its destination or source
//
// A Layer is a value without a clock. Calls of programs, datagrams that
// arrive (Receive) and time (Expire) go in. Datagrams to send (Next), in the
// order in which they were written, and the results of Read come out. Nothing blocks:
// a Read of an empty file and a second OpenIsSM return EAGAIN, and Ready lists the
// files that have news, so that the caller can block its own callers.
//
// # Requests
//
// The kernel owns the upper half of a request's transaction identifier: it puts
// the agent's number there, by which an answer finds its agent. Within the
// agent an answer finds its request by transaction, class and path; an answer without
// a request is dropped. A request with a time-out ends exactly once: with
// its answer, or after all retries with its header and 24 bytes, read back with
// ETIMEDOUT. It ends silently only when the agent or the file is closed, or when the
// peer ends an RMPP transfer. Its clock starts when Next returns it. A
// second request with the same transaction and class is refused meanwhile.
//
// A request goes to the agent that registered its class,
// version and method (and OUI). If there is none, a Get or Set is answered
// with UnsupportedAttrib and anything else is dropped. Packets for the adapter's own
// agents (SMA and PMA) must be answered before Receive. A request that a program sends to the
// agent of its own port by a directed route of no hops is given to Config.Agent during Write: the
// answer can be read at once, without regard to time-out and queue pair, and where the
// agent wants another M_Key, Write returns EINVAL.
//
// # RMPP
//
// An agent with an RMPP version and without FlagUserRMPP writes and reads whole
// messages of subnet administration, which package rmpp segments and reassembles. Other
// classes have other headers; their long messages are refused and their segments
// delivered one by one.
//
// # Limits
//
// The kernel limits only agents. This model also limits a file to MaxMessages
// datagrams, requests and unread ones together (Write then returns ENOMEM), and
// drops unsolicited datagrams from half of that.
package kernel
