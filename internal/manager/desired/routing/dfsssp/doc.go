// Package dfsssp is a routing engine for any graph: balanced shortest paths that virtual
// lanes keep free of deadlock, however few there are.
//
// Each layer has an order of the switches, and its paths never go up after they went down.
// A path is chosen, among the shortest, by the load that is on its links already, and so
// that all paths between the same two switches are free in one layer together. Layers are
// added until that is so for any two switches with CAs, or until the lanes are used up.
//
// Then pairs may be left. They get the first layer, and paths that are free in it, if need
// be longer ones: its order leaves a path between any two switches, so this cannot fail,
// with a single lane neither. Switches without CAs use the first layer too; to them and
// from them goes no traffic worth a shortest path.
package dfsssp
