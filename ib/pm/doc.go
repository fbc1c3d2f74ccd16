// Package pm codes performance management: the datagram (MAD) and the counters
// of a port. ClassPortInfo is that of package mad, at the start of MAD.Data
// like all other attributes.
//
// An attribute's UnmarshalBinary reads its own length from the start of what it
// is given, and looks at nothing behind; it assigns only after its checks and
// keeps no reference to the input. AppendBinary writes the same length.
// Reserved bits inside an attribute survive from one to the other.
//
// Counters stop at their highest value. A Set writes the counters that
// CounterSelect names and no others, so that a Set with all counters zero
// clears those.
package pm
