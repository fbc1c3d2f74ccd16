// Package service takes changes to tenants, ports and partitions from many callers,
// keeps them in a store, and has the subnet manager carry them out.
//
// A change goes through these steps (Do):
//
//  1. it is planned by the rules of package resource; a refusal goes into the audit log;
//  2. it is committed to the store: a new revision with its diff, the objects, and an
//     entry of the audit log, in one transaction;
//  3. it becomes the state that readers see, and its policy goes to the manager;
//  4. the manager writes and proves; the outcome is attached to the revision.
//
// A change is acknowledged after step 3, or with Request.Wait after step 4. What was
// not stored is never handed to the manager. A policy that the manager refuses is
// taken back by a revision of its own, which says why.
//
// # A store that is lost
//
// When a commit fails and the store may have done it all the same, nothing more is written
// until the store has been read again (Recover, or the next change): what it holds is what
// counts. The caller gets ErrUnknown, and learns what became of the change by sending it
// again with its Request.Repeat. Reads go on, marked as old; outcomes wait until they can
// be stored.
//
// Of several services on one store that of the master writes (Lead). The others follow it:
// they show each revision as it comes, and hand it to their manager, which takes over with
// it. So does a master from which another one has taken the store over while it was paused
// or cut off. It takes the store back (Regain) when its manager has asked the others, and
// none is master; while one is, the election decides.
package service
