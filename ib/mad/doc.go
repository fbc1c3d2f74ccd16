// Package mad encodes and decodes the 256-byte management datagram (MAD): the common
// header, the LID-routed and directed-route SMP, and the general class headers.
//
// SMP is the decoded form of a subnet management packet. Decoding and encoding are
// exact inverses: AppendBinary returns the bytes that Unmarshal read, reserved
// bytes included. A short packet, or one of another class, is an error that says
// what was wrong. No input panics.
package mad
