// Package umadfs gives programs the /dev/infiniband and sysfs of a node of
// the simulated fabric. The programs run unmodified, without a preloaded library.
//
//	Exec            becomes a command that sees a node's devices
//	Listen, Serve   the simulator's side
//	Turn, Wait      its part in the simulator's loop
//
// Exec creates a mount namespace, mounts three small FUSE file systems in it
// (/dev/infiniband, /sys/class/infiniband, /sys/class/infiniband_mad), passes
// their connections to the simulator over an abstract socket, and executes the
// command. Other processes see none of it. The mounts end with the
// last process of the namespace, and then the simulator frees the node's
// queue pairs; if the simulator ends first, the files return errors and nothing hangs.
//
// A umad file uses a kernel.Layer, which models Linux. The layers of a
// node use its queue pairs: 0 as a manager's attachment to the fabric,
// 1 as a queue pair of the node's endpoint, so that P_Key, SL, path bits and GRH
// are those of packets. Commands at one node share them. A node that a client
// of the ibsim protocol is attached to has no devices at the same time.
//
// It works on Linux only; on other systems Listen and Exec return an error.
package umadfs
