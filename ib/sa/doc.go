// Package sa encodes and decodes subnet administration: the MAD and its records, with
// the component masks of queries. Each record has its own file. The tag of a field, as
// `ib:"160,4"`, has its offset and its length in bits, as in the tables of the architecture.
//
// The UnmarshalBinary of a Record reads its own length from the start of the input,
// which may be part of a table or the whole data of a datagram, and ignores the rest.
// It assigns only after its checks and keeps no reference to
// the input. AppendBinary pads the record with zeros to a multiple of 8
// bytes, so that a table is a sequence of records and AttributeOffset is
// their length divided by 8. Reserved bits inside a record are kept.
//
// Records that are a subnet management attribute with an address in front hold
// the attribute of package smp; ClassPortInfo is that of package mad.
//
// Only the layout is checked: a value that does not fit its bits is an
// error that names the record and the field. A value without meaning is no error.
package sa
