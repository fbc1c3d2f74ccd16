// Package lid gives every end port of a subnet its LIDs.
//
// In: a snapshot, the LIDs that were assigned before, and the LID mask count.
// Out: one Assignment for each end port that was reached, ordered by port
// GUID, and one Move for each port that does not keep what it had. The same
// input always gives the same output, and an assignment that is fed back as
// the previous one comes out unchanged.
//
// A port is given, in this order, what it was assigned before, the LID that it
// holds already, or the lowest LIDs that are free. What belongs to a port that
// is absent is kept for it as long as other LIDs are left. When two ports
// claim a LID the one to which it was assigned before keeps it, then the one
// with the lower GUID; the other is moved.
//
// CA and router ports, and port 0 of a switch with an enhanced port 0, get
// 2^LMC LIDs in a row whose first has its low LMC bits zero; a base switch
// port 0 gets one. LID 0 is never given out. Running out of LIDs is an error,
// and then nothing is assigned.
package lid
