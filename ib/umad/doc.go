// Package umad lists and opens the user MAD devices of a Linux host,
// /dev/infiniband/umadN, and sends and receives datagrams through them. It has their
// ABI, version 5, too: the ioctl commands and their arguments, the header before each
// datagram, the error numbers, and the names of the files in /sys that describe devices.
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
