// Package smp encodes and decodes the subnet management attributes: the 64 bytes of
// data in an SMP (mad.SMP). Each attribute has its own file, with its values and the
// layout of its attribute modifier. The tag of a field, as
// `ib:"160,4"`, has its offset and its length in bits, as in the tables of the architecture.
//
// UnmarshalBinary takes the attribute from a packet or an SA record: at least its own
// length, at most 64 bytes. It assigns only after its checks
// and keeps no reference to the input. Encode and AppendBinary write all 64
// bytes. Bits outside the fields are kept, the bytes after a short attribute
// included, so that a program can read an attribute, change one field and write it
// back. Encode does not allocate.
//
// Only the layout is checked: a value that does not fit its bits is an
// error that names the attribute and the field. A value without meaning is no error;
// agents and managers decide which values are legal.
package smp
