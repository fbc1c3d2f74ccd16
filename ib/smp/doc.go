// Package smp codes the attributes of subnet management: the 64 octets of data
// that a subnet-management packet (mad.SMP) carries. One file holds one
// attribute with its values and the layout of its attribute modifier.
//
// UnmarshalBinary takes what a packet or an SA record holds of the attribute:
// its own length at least, 64 octets at most. It assigns only after its checks
// and keeps no reference to the input. Encode and AppendBinary write all 64
// octets. Bits that no field covers, the octets behind a short attribute among
// them, survive from UnmarshalBinary to Encode, so that an attribute can be
// read, changed in one field and written back. Encode does not allocate.
//
// Only the layout is judged here: a value that does not fit its bits is an
// error that names attribute and field, a value without meaning is not.
// Whether a value is legal in a place is for the agent and the manager.
package smp
