// Package plan turns the difference between what a fabric holds and what it
// ought to hold into ordered writes.
//
// Diff is pure: a snapshot and a Desired in, stages of operations out. The
// operations of one stage may be sent in any order; a stage starts when the
// one before it has ended. The order of the stages is the safety rule: while a
// plan is carried out no two ports can talk that neither the old nor the new
// policy allows, even when a host writes its own table. M_Keys come before all
// of it, in a plan of their own (DiffMKeys), so that nobody else writes in
// between. Then:
//
//  1. the tables of enforcing switch ports lose what the policy takes away,
//     and enforcement and raw filters are turned on;
//  2. ports lose the alias GUIDs that they are to lose, so that no two ports
//     have one at a time, and end ports that no switch guards lose what the
//     policy takes away;
//  3. default multicast ports are closed, then multicast forwarding tables lose
//     ports, on all switches before any gains one, since old and new trees
//     together could lead in a circle;
//  4. end ports behind an enforcing switch port get their new tables: what
//     they gain their switch port still stops, and who goes from full to
//     limited member does so before anybody gains a key;
//  5. all other end ports get their new tables;
//  6. switch ports get their new tables, then end ports their alias GUIDs;
//  7. addresses and link settings, and links from Initialize to Armed;
//  8. forwarding tables, multicast ones too, SwitchInfo, then virtual lanes;
//  9. links from Armed to Active, last, when everything that isolates stands.
//
// Hosts ask subnet administration all the while: before the first of these the
// manager's port, and the switch port before it, get the keys of partitions that no
// other port loses, and after the sixth they lose those that no other gains. The
// default partition, where a plan only takes it, stays at enforcing switch ports
// until the sixth; where a plan only gives it, it comes to them with the first.
//
// Links that carry no data yet skip the narrowing. An operation names a block,
// not its content: Fill works out the octets when it is sent, from the
// snapshot as it is then, so that a plan for a large fabric stays small.
package plan
