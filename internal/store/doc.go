// Package store defines how the state of the service is stored: objects by key, a history
// of revisions, and a hash-chained audit log. The packages bolt and etcd store it; both
// pass the tests of storetest.
//
// A store keeps bytes. It knows nothing of tenants, policies or fabrics.
//
// # Commits
//
// Store.Commit writes one transaction, all of it or nothing: objects put and deleted, at
// most one new revision, outcomes of earlier revisions, and audit entries. When it
// returns nil, the transaction is on the disk (of a majority of members, with etcd).
//
// There is one writer. Store.Acquire makes the caller the writer and returns a new
// epoch, higher than every one before. Each commit names the epoch of its writer, and a
// commit with an older one fails with ErrFenced, however late it arrives. No lease and
// no clock decides this: each transaction compares the epoch.
//
// A commit with a revision, or that puts or deletes objects, names the last revision
// that the caller saw, and fails with ErrStale if that is not the last one any more.
//
// After ErrUnavailable and ErrFull it is not known whether the commit was done. The
// caller loads again and compares the last revision before it goes on.
//
// # Audit log
//
// The log only grows. Entries are numbered from 1 without gaps. Each entry has the hash
// of the entry before it and its own: the SHA-256 of its content, which includes the
// former. An entry is one line of JSON, and its hash is that of the bytes of the line
// up to `,"hash":`. An entry that commits a revision has the SHA-256 of its bytes, so
// that the chain covers the history too. Verify recomputes all of this, and says at which
// entry the chain breaks.
//
// Who can write the file of a store can also compute hashes. The chain therefore shows
// every change by somebody who does not recompute all that follows: an entry changed,
// removed, added or moved breaks it at that place, and entries that are missing at the
// end disagree with the head of the log, which is kept apart from the entries. Somebody
// who rewrites the whole rest of the log and the head is found only by a head that was
// written down elsewhere. The service prints heads to its own log (and so to the
// journal of another machine, where logs are collected), every backup has one, and an
// export ends with one. Verify takes such heads as anchors: the chain has to pass
// through each of them. There is no secret in the chain: a key that is kept next to the file
// would be no obstacle to somebody who has the file.
//
// Store.Trim removes old entries, and the revisions that they committed. It keeps
// KeepAudit at least, counted from the store's clock and from the newest entry, whichever
// is earlier, so that a clock that is wrong cannot clear the log. It leaves a checkpoint,
// the number and hash of the last entry removed, and appends an entry that states the
// checkpoint: a checkpoint that no entry states is a forgery, and Verify says so.
//
// # Following
//
// Store.Watch yields revisions after a number, in order, without a gap. It reads them
// from the history, so that a slow reader loses none. If the history no longer has the
// next one, the watch ends with ErrCompacted, and the caller loads again.
//
// # Backup
//
// Backup writes a store to a single file, and Restore reads one into an empty store. The
// file has a version and checksums. A store or a file of an older version is migrated, one of
// a newer version is refused with a NewerError. A restored store is a different store: the
// epochs of handles that were opened before the restore are worth nothing in it.
//
// # Secrets
//
// Objects may be secrets, such as hashes of tokens. Files have mode 0600 in a directory
// with mode 0700, and a store that others can read or replace is not opened. With etcd,
// everyone who may read the prefix of the store in etcd can read it.
package store
