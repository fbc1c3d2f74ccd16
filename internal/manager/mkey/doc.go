// Package mkey makes the keys of a fabric out of one master secret.
//
// In: 32 octets that nobody else knows (Ring), the GUIDs of a port, and a
// generation, which goes up each time the port gets another key. Out: the M_Key
// of that port and generation; the SM_Key by which one manager knows another; the
// SA_Key of trusted queries. Each kind of key has a label of its own, so that none
// tells anything about another, and none tells anything about the secret.
//
// Nothing here is random and nothing is kept: the same secret gives the same keys.
package mkey
