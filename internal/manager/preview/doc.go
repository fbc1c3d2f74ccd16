// Package preview describes the effect of a plan before it is carried out.
//
// In: a snapshot, what its devices ought to hold, and the names of
// ports (groups, partitions). Out: for every port the keys that are added,
// removed and moved, by index; the cost of the writes; the room that is left; which
// groups gain or lose reachability; and likely
// mistakes: a node that joins two tenants, a shared partition whose
// tenants reach each other through it, a key given to a port while another may
// still hold it, an index 0 that moves under running jobs.
//
// Look is pure and works from tables alone, those that were read and the
// desired ones. It does not know the policy: names are labels, and reachability
// follows from the keys. Two end ports can talk when both hold a key of one
// partition and one of the two keys at least is full; routes and switch ports
// do not count.
//
// A table that was not read counts as empty; Preview.Unread counts such tables. If there
// are any, the description of the present state is incomplete.
package preview
