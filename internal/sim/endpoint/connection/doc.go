// Package connection is one end of a connected transport: RC, UC, or the channel
// of an EE context that carries RD. It cuts messages into packets and puts them
// together again, numbers them, acknowledges, sends again and gives up. It knows
// nothing of keys, addresses or queue-pair states: package endpoint decides which
// packets get here and how those that leave are addressed and stamped.
//
//	Open                         an end with its settings
//	Post                         a request of an Owner
//	HasAnswer, HasRequest, Next  what leaves
//	Requested, Answered          what arrived: from the peer's sender, from its receiver
//	Deadline, Expire             what has to be sent again
//	Failure                      what a call broke, to be asked after each
//
// A request goes out as one packet or several, each with a PSN, as do the answers
// to an RDMA READ. On a reliable end it stays until the peer has acknowledged all
// of it, in RD alone; on UC it ends with its last packet. When the answer to what
// is oldest stays away for Timeout, or the peer names a PSN that it misses, the end
// goes back there and sends everything again, RetryCount times until something
// moves. A peer without room for a message asks for time (RNR), RNRRetryCount times.
//
// The receiving side takes packets in order of PSN. A reliable one answers a gap
// once, repeats its answer to what it has seen, and refuses what makes no sense;
// UC waits for the beginning of the next message. No packet, whatever its octets,
// does more than write into memory and buffers that it may write into.
package connection
