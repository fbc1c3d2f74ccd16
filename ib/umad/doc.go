// Package umad lists and opens the user MAD devices of a Linux host,
// /dev/infiniband/umadN, and sends and receives datagrams through them. It also holds
// their ABI, version 5: the ioctl commands and their arguments, the header before each
// datagram, the error numbers, and the names of the files in /sys that describe devices.
//
//	Devices          the adapters of this machine, from /sys
//	Open, NewConn    a Conn at one port of an adapter
//	Conn             registers agents, sends and receives datagrams
//	Header, Registration    the header of a datagram, the arguments of an ioctl
//
// Inside `ibwarden sim exec` a program sees the devices of a simulated host instead.
//
// Bytes are in the byte order of the machine except where a field says otherwise.
// Decoding never panics: a short argument is an error.
package umad
