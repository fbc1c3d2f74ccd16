// Package ib holds the basic InfiniBand types: LIDs, GIDs, GUIDs, keys, port numbers,
// service levels and the encoded quantities. They are plain comparable types with
// exact parsing and printing; nothing here allocates tables or does I/O.
//
// Types are distinct where a mix-up hurts: a NodeGUID is not a PortGUID,
// and a PKey (16 bits, with membership) is not a PKeyBase (15 bits, the number
// of a partition).
package ib
