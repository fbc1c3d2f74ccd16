// Package repair keeps routes as they are where the graph has lost links, and replaces only
// the exits whose way leads over what is gone.
//
// In: the routes of an engine for a graph (Keep), and later graphs that lack some of its
// links, switches or end ports, or have them back (Kept.On). Out: routes for the later graph.
// An exit that was replaced comes back with what was missing: on the first graph they are
// those of the engine again. What is new to the first graph, and ways that cannot be
// replaced, are for the engine.
//
// Deadlock: the engine tells the order of switches in which none of its ways goes up after
// it went down (graph.Routes.Order), and the replaced exits keep to it where they can. The
// highest switch of all cannot where it has lost a way down: it may go down and up again, and
// so may those that are left after that. The judge of routes says whether that is right.
//
// The exits for a LID lead to it as a tree. What is to be replaced is a part of it that is
// closed: every switch whose way leads over a missing link, and nothing else. Its switches
// are led, nearest first, to others whose ways stand, so that no circle can come about.
//
// The cost is in what is to be replaced: for each LID the switches of that part times their
// links, after one look at the tables of the switches that have lost a link.
package repair
