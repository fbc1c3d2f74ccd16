// Package linuxtest asks a Linux machine and our simulated end node what the rules of
// docs/dev/conformance.md ask of an end port, by the same packets, and keeps their answers in
// docs/dev/linux-rules.md.
//
//	subject   one of the two: a port with a cable, at the other end of which is the test
//	asked     a subject with what it said to one question
//	probes    the questions: the rows that they are about, and what is sent
//	unasked   the rows that nobody outside a port can ask, with the reasons
//	weather   what happens to a machine's adapter, in random sequences, after which nothing may be lost
//
// The machine is Debian's kernel with its driver ib_qib, in QEMU. The simulated end node has the
// capabilities of that adapter, so that answers can be compared field by field.
//
// To know that a packet is refused, a test waits for the answer to a later one, which the same port
// takes after it. A machine is asked to run a program besides, which gives those that have packets
// to take a turn.
package linuxtest
