// Package umad is what Linux and its programs say to each other over
// /dev/infiniband/umadN, ABI version 5: the ioctl commands and their arguments,
// the header in front of each datagram, the error numbers, and the names of the
// files in /sys that describe devices. It opens the devices too.
//
//	Devices          what adapters there are, from /sys
//	Open, NewConn    a Conn at one port of one of them
//	Conn             registers agents, sends and receives datagrams
//	Header, Registration    what stands in front of datagrams, and in ioctls
//
// A program sees the devices of a host of a simulated fabric in their place inside
// `ibwarden sim exec`.
//
// The order of octets is the machine's own but where a field says otherwise.
// Decoding never panics: a short argument is an error.
package umad
