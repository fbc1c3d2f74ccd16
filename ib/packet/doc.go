// Package packet codes InfiniBand packets as they are on the wire, from the
// local route header to the variant CRC:
//
//	LRH, [GRH], BTH, extended headers, payload, pad, ICRC, VCRC
//	LRH, [RWH], payload, VCRC                       (raw packets)
//
// Parse takes the octets of one packet and gives a View: pointers to the
// headers inside those octets, and the payload. It checks every length that
// the packet states against the octets that are there (PktLen, PayLen, PadCnt,
// the headers that the opcode calls for) and the versions of the headers, and
// nothing else: CRCs are left to CheckICRC and CheckVCRC, LIDs, virtual lanes and keys
// to whoever receives the packet. No input panics, and a packet that parses
// costs no allocation.
//
// Header types are arrays that lie over the octets of a packet. Getters read a
// field; setters write a field and no other bit. A setter takes the low bits
// that fit the field and drops the rest; Append and MADPacket, which make whole
// packets, refuse values that do not fit. Reserved bits stay as they are.
//
// Append lays out a packet for an opcode, Seal computes its CRCs. MADPacket is
// a datagram with the headers that carry it. Package capture writes packets to a
// file that Wireshark reads.
package packet
