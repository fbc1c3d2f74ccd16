// Package umad is what Linux and its programs say to each other over
// /dev/infiniband/umadN, ABI version 5: the ioctl commands and their arguments,
// the header in front of each datagram, the error numbers, and the names of the
// files in /sys that describe devices. It codes; it knows no rules.
//
// The order of octets is the machine's own but where a field says otherwise.
// Decoding never panics: a short argument is an error.
package umad
