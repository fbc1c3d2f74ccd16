// Package ibsimtest tests ibwarden against independent programs:
// Debian's ibsim as the fabric, smpquery and ibnetdiscover to read it, and
// OpenSM to bring up the same fabric with the same partitions.conf. It runs the
// ibwarden binary and compares what programs print. Of ibwarden's own
// packages it uses only internal/topology, which makes the topologies, and the values
// of ib; the tests of routes use the routing engines too.
//
// The package itself is the harness: FindTools finds the programs, StartSim
// starts an ibsim, and Sim.Command runs a program that talks to it.
// Every process has a deadline and ends with the one that started it. The expected
// output comes from a small model of
// partitions.conf in the tests that shares no code with ibwarden's.
//
// The tests skip where a program is missing, and fail there when CI=true.
// IBWARDEN_SOAK=1 makes the runs long, SOAK_SEED=n repeats one. The program
// in bench compares ibwarden with OpenSM in time and memory.
//
// # Routes beside OpenSM's
//
// The files that begin with routes set the routing engines of ibwarden beside those of OpenSM on the same
// cables: how they load links, how long their paths are, how many virtual lanes they need,
// and how long they take.
//
// The files that begin with inside run unmodified programs at the hosts of a simulated fabric that
// is served with devices, and OpenSM among them, for tests.
package ibsimtest
