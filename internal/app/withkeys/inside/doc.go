// Package inside runs a program in a mount namespace of its own, with a /dev/infiniband that
// passes its packets on to a port of this machine through a withkeys.Gate.
//
//	Hide      keeps the memory of this process from others, before a key is read
//	Run       serves the namespace until the program ends
//	Inside    becomes the program, in the namespace; in a process of its own
//
// Run stays between the program and the port: it serves the directories of the namespace by
// FUSE, and each file that the program opens there is one of the port. Keys are in the memory of
// this process alone. It is not dumped; the program, which has lost the right to trace, cannot
// read it.
//
// Programs run on Linux only; elsewhere Run returns an error.
package inside
