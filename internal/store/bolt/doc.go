// Package bolt stores the state of the service in one bbolt file.
//
// The file is FileName in a directory that belongs to the service alone.
//
// A commit is on the disk when it returns: bbolt writes the pages of a transaction,
// syncs, writes the page that makes them valid, and syncs again. After a crash the file
// holds the last transaction that got that far. Commits that come while another one is
// synced are written together, with one sync, in the order in which they came; each is
// still refused or done for itself. The file does not shrink: what was deleted makes
// room for what comes.
//
// One process has the file open. Another one gets ErrLocked, which names the process.
//
// Each value has a checksum, which is checked when it is read, and the state and the last
// audit entry are compared when the file is opened. A file that is torn, or
// that is no store, is refused with ErrCorrupt. Pages that are damaged where nothing looked
// yet are reported by the call that meets them.
//
// When a write fails for lack of space, the commit fails with ErrFull, and the next one tries
// again. When a sync fails, nobody knows what is on the disk: the store then refuses
// all writes with ErrUnavailable until the process opens it again. So it does while the file is
// not in its directory any more, or another one is in its place.
package bolt
