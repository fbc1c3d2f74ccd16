// Package umadfs gives programs the /dev/infiniband and the sysfs of a node of
// the simulated fabric, so that they run on it unmodified and without a preload.
//
//	Exec            becomes a command that sees a node's devices
//	Listen, Serve   what a simulator does for such commands
//	Turn, Wait      its part in the simulator's loop
//
// Exec makes a mount namespace, mounts three small FUSE file systems in it
// (/dev/infiniband, /sys/class/infiniband, /sys/class/infiniband_mad), hands
// their connections to the simulator over an abstract socket, and becomes the
// command. Nothing of it is seen by other processes. The mounts end with the
// last process of the namespace, and then the simulator gives up the node's
// queue pairs; when the simulator ends first, the files fail and nobody hangs.
//
// Behind a umad file stands a umad.Layer, which does what Linux does; behind the
// layers of a node, its queue pairs: 0 as a manager's attachment to the fabric,
// 1 as a queue pair of the node's endpoint, so that P_Key, SL, path bits and GRH
// are those of packets. Commands at one node share them. A node that a client
// of the ibsim protocol is attached to has no devices at the same time.
//
// It works on Linux only; Listen and Exec say so elsewhere.
package umadfs
