// Package preview says what a plan will do, before it is carried out.
//
// In: a snapshot, what its devices ought to hold, and the names that people
// know ports by (groups, partitions). Out: for every port the keys that come,
// go and move, index by index; what the writes cost; what room is left; which
// groups can talk after and could not before, and the reverse; and what looks
// like a mistake: a node that joins two tenants, a shared partition whose
// tenants reach each other through it, a key given away while somebody may
// still hold it, an index 0 that moves under running jobs.
//
// Look is pure and works from tables alone, those that were read and those
// that are wanted. It knows no policy: names are only names, and who can talk
// follows from the keys. Two end ports can talk when both hold a key of one
// partition and one of the two keys at least is full; routes and switch ports
// are not asked.
//
// What was not read counts as empty; Preview.Unread counts such tables, and
// then what is said about before is not the whole truth.
package preview
