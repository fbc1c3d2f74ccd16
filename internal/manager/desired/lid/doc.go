// Package lid assigns LIDs to the end ports of a subnet.
//
// In: a snapshot, the earlier assignments, and the LID mask count.
// Out: one Assignment for each end port that was reached, ordered by port
// GUID, and one Move for each port whose LIDs change. The same
// input always gives the same output, and an assignment that is passed back as
// the previous one does not change.
//
// A port gets, in this order, its earlier assignment, the LID that it
// holds already, or the lowest free LIDs. The LIDs of a port
// that is absent are kept for it as long as other LIDs are left. When two ports
// claim a LID, the one with the earlier assignment keeps it, then the one
// with the lower GUID; the other is moved.
//
// One LID may belong to whichever manager is master: no port is assigned it, and the
// port of the master, which has it, keeps one of its own for later.
//
// CA and router ports, and port 0 of a switch with an enhanced port 0, get
// 2^LMC consecutive LIDs, the first with its low LMC bits zero; a base switch
// port 0 gets one. LID 0 is never assigned. If LIDs run out, that is an error
// and nothing is assigned.
package lid
