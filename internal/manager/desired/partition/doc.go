// Package partition compiles a resolved policy into P_Key tables and enforcement.
//
// In: for every end port its identity, the size of its table and the table as
// it was read, the same for the switch port it is cabled to, and the members
// of each partition. Out: the table that every end port should hold, the
// table and enforcement of every switch port that faces a CA or router, and a
// list of the ports that no switch guards, with the reason. Compile is pure:
// the same input gives the same output, sorted.
//
// A key keeps its index while the port keeps the partition, whether full or
// limited, since queue pairs refer to the index. Index 0 holds the key of the
// default partition, or that of the partition that claims it by index0. Without
// a default partition it holds the port's first key, and keeps it as long as the
// port keeps that partition; then the key of the first of its partitions, in the
// order of the policy, moves there. A port without a partition has an empty table,
// and so has the switch port before it: nothing passes. A new
// key goes after all others, into a gap only when there is no room after them; a
// gap that this change creates counts as used, for the same reason. New
// keys are in OpenSM's order, so that a new fabric gets the same tables
// from either manager.
//
// A policy that does not fit is refused as a whole, with a list of every port that is
// too small, unless the caller fences the port: then it gets limited membership of the
// default partition and nothing else (nothing at all without one), and the
// other ports get their full tables. If a switch port is too small and there is
// a default partition, the port gets no enforcement, and this is reported. Without one
// the policy is refused, unless the port is before the manager. Enforcement
// never uses an incomplete table.
//
// If two ports claim a port GUID, neither is trusted: both get limited membership
// of the default partition and nothing else, or nothing without one.
package partition
