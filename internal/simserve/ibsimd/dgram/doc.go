// Package dgram has datagram sockets, local ones of the abstract namespace and
// UDP, for a server that takes and gives many small datagrams: addresses as
// octets, several datagrams for one call to the kernel, and waits that cost
// little.
//
// Nothing here waits but Poll. Whatever could not be done at once without being
// wrong (a full socket, nothing to read) is reported as a count, not as an error.
// A Receiver's datagrams are good until its next use. Nothing may be used by two
// goroutines at a time.
//
// It works on Linux only; Listen and EventCounter say so elsewhere.
package dgram
