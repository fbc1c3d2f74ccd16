// Package dgram provides datagram sockets, abstract Unix and UDP, for a server of many
// small datagrams: addresses as octets, several datagrams per system call, and cheap
// waits.
//
// Only Poll waits. An operation that could not be done at once
// (a full socket, nothing to read) is reported as a count, not as an error.
// The datagrams of a Receiver are valid until its next use. Nothing here is safe for
// concurrent use.
//
// It works on Linux only; on other systems Listen and EventCounter return an error.
package dgram
