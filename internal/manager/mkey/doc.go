// Package mkey derives the keys of a fabric from one master secret.
//
// In: a secret of 32 bytes (Ring), the GUIDs of a port, and a
// generation, which increases each time the port gets another key. Out: the M_Key
// of that port and generation; the SM_Key by which one manager recognises another; the
// SA_Key of trusted queries. Each kind of key has a label of its own, so that no key
// reveals another, or the secret.
//
// Nothing is random and nothing is stored: the same secret gives the same keys.
//
// A Keying decides which port is given which of them, by the Book of those that were given.
package mkey
