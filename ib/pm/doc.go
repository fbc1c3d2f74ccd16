// Package pm encodes and decodes performance management: the MAD and the counters of a
// port. ClassPortInfo is that of package mad, at the start of MAD.Data
// like all other attributes. The tag of a field, as
// `ib:"160,4"`, has its offset and its length in bits, as in the tables of the architecture.
//
// The UnmarshalBinary of an attribute reads its own length from the start of the
// input and ignores the rest. It assigns only after its checks and
// keeps no reference to the input. AppendBinary writes the same length.
// Reserved bits inside an attribute are kept.
//
// Counters stop at their highest value. A Set writes only the counters that
// CounterSelect names, so a Set with all counters zero clears those.
package pm
