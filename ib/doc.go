// Package ib holds the values that every other package speaks in: LIDs, GIDs,
// GUIDs, keys, port numbers, service levels and the coded quantities of the
// InfiniBand architecture. They are plain comparable types with exact parsing
// and printing; nothing here allocates tables or does I/O.
//
// Distinct types are used where a mix-up hurts: a NodeGUID is not a PortGUID,
// and a PKey (16 bits, with membership) is not a PKeyBase (15 bits, the number
// of a partition).
package ib
