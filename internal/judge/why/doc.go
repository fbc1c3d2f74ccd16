// Package why explains why one end port can or cannot talk to another: the cause in one
// sentence, and what would change it.
//
// It looks at the P_Key tables of both ports first. Two ports can talk over a partition
// when both tables hold a key of it and at least one of the two is full. Where they do,
// package reach follows a packet each way, since a switch or a link on the way may stop
// it. Both ways must work: an answer needs them.
//
// What was not read is unknown, never fine: an answer is CauseUnknown when the keys or the
// way that would decide were not read, and Talks only where everything was.
package why
