// Package ibsim is a client of ibsim, the simulator that ships with the
// InfiniBand diagnostics. It attaches to one node of a running simulator and
// carries SMPs and general management datagrams. Of the packet headers of the latter
// the protocol carries only LIDs and queue pairs.
//
// The protocol has two datagram sockets: one for control requests, each of which is
// answered, and one for packets. The environment variables of libumad2sim say which
// simulator to use and which node to attach to: IBSIM_SOCKNAME,
// IBSIM_SERVER_NAME, IBSIM_SERVER_PORT, SIM_HOST. ibsim returns a packet that
// nothing answers at once with status 110; the link reports it as lost.
//
// It works on Linux only; on other systems Dial returns an error.
package ibsim
