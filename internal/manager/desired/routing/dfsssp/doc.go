// Package dfsssp is a routing engine for any graph: balanced shortest paths that virtual
// lanes keep free of deadlock, however few there are.
//
// In the first layer, home, no path goes up in an order of the switches after it went down;
// so there may be a second one, by another order. A path is chosen, among the shortest, by
// the load that is on its links already, and rather one that is free in a layer together
// with all other paths between the same two switches. Where the loads hardly differ, the
// place of the LID decides, so that few routes move when a cable breaks. Pairs of switches
// for which there is no such layer get the first other layer where their links do not wait
// for each other in a circle, and more layers are made for them as long as there are lanes.
//
// Then pairs may be left. They get home, and paths that are free there, if need be longer
// ones: its order leaves a path between any two switches, so this cannot fail. With a single
// lane, up*/down* does the same with a more even load. Pairs with a switch without CAs get
// home too where no layer is free for them.
package dfsssp
