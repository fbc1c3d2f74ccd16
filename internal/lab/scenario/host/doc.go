// Package host implements the statements of a scenario for root on a host: change the
// tables and answers of the host's own device, send traps, pose as a subnet manager,
// and query QP1 of other hosts. It turns statements into actions on a testbed.
package host
