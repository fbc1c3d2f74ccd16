// Package ibsim is a client of ibsim, the simulator that ships with the
// InfiniBand diagnostics: it attaches to one node of a running simulator and
// carries subnet-management packets and general management datagrams to and from
// it. No header of the latter but LIDs and queue pairs is carried.
//
// The protocol is two datagram sockets: one for control requests, answered one
// by one, and one for packets. Which simulator, and where in its fabric, is
// told by the environment variables that libumad2sim reads: IBSIM_SOCKNAME,
// IBSIM_SERVER_NAME, IBSIM_SERVER_PORT, SIM_HOST. ibsim gives a packet that
// nobody answers back at once with status 110; the link reports it as lost.//
// It works on Linux only; Dial says so elsewhere.
package ibsim
