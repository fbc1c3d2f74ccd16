// Package rmpp implements the reliable multi-packet protocol (RMPP) of the general
// management classes, which carries messages longer than one datagram.
//
//	Endpoint  every transfer of one queue pair, in both directions
//	Message   what is carried: the header of its datagrams and its records
//	Limits    time-outs, retries and bounds, all with their unit
//
// An Endpoint is a value. In: messages to send (Send), RMPP packets (Receive)
// and time (Expire). Out: packets (Next: segments and acknowledgements,
// built on demand), received messages (Receive), the outcome of
// what was sent (Ended), and when to call Expire (Deadline). It has no
// clock.
//
// A transfer always ends: with its last acknowledgement, with a STOP or ABORT
// of the peer, or with its own after Limits.Tries tries or
// Limits.TotalTime. sender.go and receiver.go list the status of each
// fault. A STOP or an ABORT is never answered.
//
// Memory is bounded by Limits: the number of transfers each way, of those with
// one peer, the bytes of messages, and the number of ended ones that are
// remembered so that their last packets can be acknowledged again. Segments are
// built when they are sent, so a hostile window creates no queue. Segments above the
// window are dropped, as Linux does, since a duplicate may have been overtaken
// by the window.
package rmpp
