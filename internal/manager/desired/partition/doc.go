// Package partition turns a resolved policy into the P_Key tables and the
// enforcement that it asks of a fabric.
//
// In: for every end port its identity, the size of its table and the table as
// it was read, the same for the switch port it is cabled to, and who belongs
// to which partition. Out: the table that every end port should hold, the
// table and enforcement of every switch port that faces a CA or router, and a
// list of those ports that no switch guards, with the reason. Compile is pure:
// the same input gives the same output, sorted.
//
// A key keeps its index while the port keeps the partition, whether full or
// limited, since queue pairs go by the index. Index 0 holds the key of the
// default partition, or that of the partition that claims it by index0. Without
// a default partition it holds the port's first key, and keeps it as long as the
// port keeps that partition; then the key of the first of its partitions, in the
// order of the policy, moves there. A port of no partition has an empty table,
// as has the switch port before it: nothing passes. A new
// key goes behind all others, into a gap only when there is no room behind; a
// gap that this very change makes counts as used, for the same reason. New
// keys come in OpenSM's order, so that a fresh fabric gets the same tables
// from either manager.
//
// A policy that does not fit is refused whole, with every port that is too
// small, unless the caller has it fenced: then it gets limited membership of the
// default partition and nothing else (nothing at all without one), and the
// others what they should. A switch port that is too small is not refused where
// there is a default partition: it gets no enforcement, and says so. Without one
// it is, unless it is before the manager. There is never enforcement with half a table.
//
// A port GUID that two ports claim is nobody's: both get limited membership
// of the default partition and nothing else, or nothing without one.
package partition
