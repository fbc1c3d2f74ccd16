// Package plug lets a program outside be the device of a host of a served fabric: what a Linux machine
// with a simulated adapter is.
//
//	Listen, New, Serve   the socket of a simulator, and those who are plugged in
//	Dial, Device         the other side: a place in the fabric
//
// A connection takes the place of one host, once: the host is switched off, and what the device sends and
// gets are the packets on the host's cable, byte by byte (package sim/fabric, Plug). When the
// connection ends, the host is switched on again. The device can do what root of that host can do with
// an adapter that obeys nobody, and nothing else: it has one cable.
//
// The socket is for root and the user that runs the simulator (package door). Every message has a
// length that is bounded; one that is none ends the connection. A device that does not read what
// comes loses packets, as one without buffers, and holds up nobody.
package plug
