// Package ibsimtest holds ibwarden against judges from outside the project:
// Debian's ibsim as the fabric, smpquery and ibnetdiscover to read it, and
// OpenSM to bring up the same fabric with the same partitions.conf. It runs the
// ibwarden binary and looks at what programs print, never at ibwarden's own
// packages, but for internal/topology, which makes the topologies, and the values
// of ib that it uses.
//
// The package itself is the harness: FindTools finds the programs, StartSim
// runs an ibsim of one's own, and Sim.Command runs a program that talks to it.
// Every process has a deadline and dies with the one that started it. What
// should come out is worked out in the tests by a small model of
// partitions.conf that shares no code with ibwarden's.
//
// The tests skip where a program is missing, and fail there when CI=true.
// IBWARDEN_SOAK=1 makes the runs long, SOAK_SEED=n repeats one. The program
// in bench compares ibwarden with OpenSM in time and memory.
package ibsimtest
