// Package sa codes what subnet administration sends: the datagram (MAD) and the
// records in it, one file each, with the component masks that name their
// components in a query.
//
// A Record's UnmarshalBinary reads its own length from the start of what it is
// given, be it a piece of a table or the whole data of a datagram, and looks at
// nothing behind. It assigns only after its checks and keeps no reference to
// the input. AppendBinary fills the record up with zeros to a multiple of 8
// octets, so that a table is records one after the other and AttributeOffset is
// their length divided by 8. Reserved bits inside a record survive from
// UnmarshalBinary to AppendBinary.
//
// Records that are a subnet-management attribute with an address in front hold
// the attribute of package smp; ClassPortInfo is that of package mad.
//
// Only the layout is judged here: a value that does not fit its bits is an
// error that names record and field, a value without meaning is not.
package sa
