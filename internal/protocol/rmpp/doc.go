// Package rmpp carries messages that are longer than one datagram: the
// reliable multi-packet protocol of the general management classes.
//
//	Endpoint  every transfer of one queue pair, in both directions
//	Message   what is carried: the header of its datagrams and its records
//	Limits    time-outs, retries and bounds, all with their unit
//
// An Endpoint is a value. In: messages to send (Send), RMPP packets (Receive)
// and time (Expire). Out: packets (Next, segments and acknowledgements alike,
// made when they are asked for), received messages (Receive), the end of what
// was sent (Ended), and when Expire wants to be called (Deadline). It keeps no
// clock.
//
// A transfer always ends: with its last acknowledgement, with a STOP or ABORT
// of the other side, or with one of this side after Limits.Tries tries or
// Limits.TotalTime. Which status each fault gets stands at the faults in
// sender.go and receiver.go. A STOP or an ABORT is never answered.
//
// Memory is bounded by Limits: the number of transfers each way, of those with
// one peer, the octets of messages, and the number of ended ones that are
// remembered so that their last packets can be acknowledged again. Segments are
// cut when they leave; a hostile window makes no queue. Segments above the
// window are dropped, as Linux does, since a duplicate may have been overtaken
// by the window.
package rmpp
