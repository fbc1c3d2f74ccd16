// Package etcd stores the state of the service in an etcd v3 cluster, for several managers.
//
// All keys are below a prefix:
//
//	state           format, epoch, last revision, head of the audit log, as JSON
//	object/KEY      an object
//	manager/KEY     an object whose key begins with store.Aside, manager/
//	revision/N      a revision: the data, or a reference to its parts
//	outcome/N       its outcome, in the same way
//	audit/N         an entry, as a line
//	part/ID/N       a part of a value that is too large for one request
//	blob/ID         what the parts belong to
//	lease           who may write to the fabric, as JSON
//
// N has 16 hexadecimal digits. Each commit is one transaction of etcd, which compares the
// revision at which the key state was last written with the one that the caller saw, and
// writes that key again. State has the epoch, so a writer with an old epoch cannot write,
// however late its request arrives: no clock has a say. The key lease is for the fabric, which
// knows no epochs (store.Leaser). It is no lease of etcd, whose least time is some seconds:
// its holder puts the same value again, if it is still that value, and whoever takes the store
// over puts another, in the transaction of the new epoch, if it is still at the revision that
// he saw.
//
// # Large commits
//
// etcd takes 1.5 MiB and 128 operations in a request. Values that are too large are
// written in parts before the transaction that refers to them. If a commit has too many
// objects for one transaction, they are written as parts too, and the transaction that
// commits enters them as pending in the state. They are in the store from that moment:
// Load reads them from there. Then they are written to their keys, and if the writer
// dies meanwhile, the next one finishes that before it writes anything else. Parts
// that no commit refers to are deleted by the next Acquire.
//
// # Time-outs
//
// Each member has a connection of its own. A request goes to one member; if that does not answer
// for askNext, it goes to the next too, and whoever answers is asked first from then on, and
// watched. So a request may be carried out twice: each compares the state that it was made for,
// so that the second one does nothing.
//
// A read fails with ErrUnavailable after ReadTimeout, a write after CommitTimeout, if there is
// no majority. A write whose answer was lost is looked up; if even that fails, it is not known
// whether it was done. A range with MayLack is read from any one member that answers.
//
// A cluster whose database is full (the alarm NOSPACE) answers ErrFull to writes, and
// serves reads. Each commit makes a new version of the key state, and etcd keeps all
// versions until it is compacted: run the servers with --auto-compaction-retention=1.
// Compaction removes nothing that a store needs, and a watch goes on after it.
//
// Who may read the prefix sees the objects, secrets included; who may write it can change
// everything. Give the prefix a user of its own, and use TLS with client certificates.
package etcd
