// Package dfsssp is a routing engine for any graph: balanced shortest paths that virtual
// lanes keep free of deadlock, however few there are.
//
// In the first layer, home, no path goes up in an order of the switches after it went down.
// A path is chosen, among the shortest, by the load that is on its links already, and rather
// one that is free in the home layer. Where the loads hardly differ, the place of the LID
// decides, so that few routes move when a cable breaks. In graphs where many pairs of switches
// have no such path, all CAs of a switch first get the same paths. Pairs whose paths are not
// free in the home layer get the first other layer where their links do not wait for each
// other in a circle, and more layers are made for them as long as there are lanes.
//
// Then routes move from full links to others that are as short, one by one, where the paths
// that change stay free of circles in their layers, or find another layer. A layer more is
// made for this where it makes the fullest link much emptier.
//
// Where there are routes of before, these stay instead as far as they are shortest, with
// their layers, and only exits that are missing are chosen: by the load, and in the layers
// where they close no circle. Where this leads nowhere all is routed again.
//
// Pairs may be left for which there are too few lanes. They get home, and paths that are
// free there, if need be longer ones: its order leaves a path between any two switches, so
// this cannot fail. With a single lane, up*/down* does the same with a more even load. Pairs
// with a switch without CAs get home too where no layer is free for them.
package dfsssp
