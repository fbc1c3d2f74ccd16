// Package packet encodes and decodes InfiniBand packets as they are on the wire, from
// the local route header to the variant CRC.
//
//	LRH, [GRH], BTH, extended headers, payload, pad, ICRC, VCRC
//	LRH, [RWH], payload, VCRC                       (raw packets)
//
// Parse takes the bytes of one packet and returns a View: pointers to the
// headers inside those bytes, and the payload. It checks the versions of the
// headers, and every length that the packet states against the bytes present
// (PktLen, PayLen, PadCnt, the headers that the opcode requires). It does not check
// CRCs (use CheckICRC and CheckVCRC), LIDs, virtual lanes or keys. No input panics,
// and parsing a valid packet does not allocate.
//
// Header types are arrays over the bytes of a packet. A getter reads one field; a
// setter writes one field and no other bit. A setter keeps the low bits
// that fit the field and drops the rest; Append and MADPacket, which build whole
// packets, return an error for values that do not fit. Reserved bits stay as they are.
//
// Append lays out a packet for an opcode, Seal computes its CRCs. MADPacket builds
// the packet that carries a management datagram. Package capture writes packets to a
// file that Wireshark reads.
package packet
