// Package plan turns the difference between what a fabric holds and what it
// ought to hold into ordered writes.
//
// Diff is pure: a snapshot and a Desired in, stages of operations out. The
// operations of one stage may be sent in any order; a stage starts when the
// one before it has ended. The order of the stages is the safety rule: while a
// plan is carried out no two ports can talk that neither the old nor the new
// policy allows, even when a host writes its own table. M_Keys come before all
// of it, in a plan of their own (DiffMKeys), so that no other manager writes in
// between. Then:
//
//  1. the tables of enforcing switch ports lose what the policy takes away,
//     and enforcement and raw filters are turned on;
//  2. ports lose the alias GUIDs that they are to lose, so that no two ports
//     have one at a time, and end ports without a guard lose what the
//     policy takes away;
//  3. default multicast ports are closed, then multicast forwarding tables lose
//     ports, on all switches before any gains one, since old and new trees
//     together could form a loop;
//  4. end ports behind an enforcing switch port get their new tables: their switch
//     port still stops what they gain, and ports that go from full to
//     limited member do so before any port gains a key;
//  5. all other end ports get their new tables;
//  6. switch ports get their new tables, then end ports their alias GUIDs;
//  7. addresses and link settings, and links from Initialize to Armed, beginning with the
//     ports that have a LID which another is to have;
//  8. forwarding tables, multicast ones too, SwitchInfo, then virtual lanes. Where old and
//     new routes together could lead in a circle, linear tables are stages of their own:
//     first the switches near a LID, then those whose new way leads over them;
//  9. links from Armed to Active, last, when everything that isolates is in place.
//
// Hosts query subnet administration all the while: before stage 1 the
// manager's port, and the switch port before it, get the keys of partitions that no
// other port loses, and after stage 6 they lose those that no other gains. If a plan
// only removes the default partition, it stays at enforcing switch ports
// until stage 6; if a plan only adds it, it comes to them with stage 1.
//
// Links that carry no data yet skip the narrowing. An operation names a block,
// not its content: Fill computes the bytes when it is sent, from the
// snapshot at that time, so that a plan for a large fabric stays small.
package plan
