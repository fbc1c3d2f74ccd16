// Package umadtest runs unmodified programs inside `ibwarden sim exec`: Debian's
// opensm and diagnostics, and ibwarden itself with --fabric umad, on fabrics
// that `ibwarden sim --devices` serves. Every datagram of these tests goes
// through open, ioctl, write, poll and read of a /dev/infiniband file. The output of
// programs is compared with the topology that was served.
//
// The tests skip where programs, FUSE or mount namespaces are missing, and fail
// there when CI=true. Every process has a deadline and ends with the one that
// started it. IBWARDEN_SOAK=1 runs them on larger fabrics. The benchmark brings
// one fabric up in process, over the ibsim protocol and over this path.
//
// Host is a simulated host with a umad file, for tests and
// examples of the public packages: in the process, with the fabric's own clock, and
// without /dev.
package umadtest
