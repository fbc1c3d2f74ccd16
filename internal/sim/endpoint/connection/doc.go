// Package connection implements one end of a connected transport: RC, UC, or an EE
// context that carries RD. It segments and reassembles messages, numbers packets,
// acknowledges, retries and gives up. It knows
// no keys, addresses or queue pair states: package endpoint decides which
// packets arrive here, and adds the headers of those that leave.
//
//	Open                         an end with its settings
//	Post                         a request of an Owner
//	HasAnswer, HasRequest, Next  packets to send
//	Requested, Answered          received packets: requests, responses
//	Deadline, Expire             retransmission
//	Failure                      the error of the last call, to be read after each
//
// A request is sent as one packet or several, each with a PSN, and so is the response
// to an RDMA READ. On a reliable end a request is kept until the peer has acknowledged
// all of it (RD: one at a time); on UC it ends with its last packet. When the response
// to the oldest request does not arrive within Timeout, or the peer reports a missing
// PSN, the end goes back to that PSN and sends everything again, RetryCount times until
// there is progress. A peer without room for a message answers RNR NAK; that is
// retried RNRRetryCount times.
//
// The receiving side accepts packets in order of PSN. A reliable one answers a gap
// once, repeats its response to duplicates, and refuses invalid packets;
// UC waits for the beginning of the next message. No packet, whatever its octets,
// writes anywhere but to memory and buffers that it may write to.
package connection
