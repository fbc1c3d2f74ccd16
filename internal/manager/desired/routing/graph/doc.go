// Package graph is a subnet as a routing engine sees it, and what an engine returns.
//
// A routing engine is a pure function of an Input: the switches, the usable links
// between them, the end ports behind each, and the virtual lanes that there are. It
// returns Routes: for each switch the exit port of every LID, and the virtual lane that
// a packet takes on every link. The same Input always gives the same Routes.
//
// An engine routes every LID from every switch that can reach it, port 0 of switches
// included, and leaves ib.PortNone elsewhere. Broken and uneven graphs are no error:
// what is connected stays connected. An engine returns an error where the graph is none
// of its kind or where Input asks for what it cannot do; then nothing is written.
//
// What engines share is here too: the channels of a graph (Channels), the check that
// paths close no circle on them (Waits), and routes that outlast links (KeptRoutes).
//
// Is two routing engines that need one virtual lane: min-hop and up*/down*.
//
// MinHop takes a shortest path, and can deadlock where the cabling has loops.
// UpDown cannot: all switches are in one order and no packet
// goes up again after it went down. The order begins with a switch farthest
// from any CA, or in the middle where all have CAs, and grows along the
// cables. So each switch but the first of its component has a higher neighbour,
// which makes every port reachable from every other, switches included, and the
// spines and cores of a fat tree all carry their share, with broken links
// too. (A core switch with CAs of its own is the exception: in a tree of three
// levels it may carry nothing between pods.)
//
// Among exits of equal length the tables balance the routes from CA to CA
// that cross each link, with equal weight for every pair of those that send to each other
// (graph.Senders), and after that the
// number of LIDs. Where that leaves links much fuller than others, routes are chosen once
// more, each with the load of all others known; not in the largest fabrics. The LIDs of one port take different links where there are
// different ones.
package graph

import "github.com/ibwarden/ibwarden/internal/observed"

// Input is what a routing engine is given.
type Input struct {
	*Graph
	Room
	// File are forwarding tables that were given; nil: none were.
	File *observed.LFTs
	// Workers may take parts of the work: what they do has no say in the result.
	Workers Workers
	// Senders are those that engines which count the load of links count; nil: all send to
	// all. Engines in closed form take no notice.
	Senders *Senders
	// Last is what was routed before, nil for nothing. An engine may keep routes of it that
	// are as good as others, so that few move when a cable breaks. It is no more than a hint:
	// whatever it holds, the routes are right.
	Last *Last
}

// Last is a graph and the routes that an engine returned for it.
type Last struct {
	*Graph
	Routes *Routes
}

// Room is what routes may use of virtual lanes and service levels, at least 1 of each.
type Room struct {
	// VLs is the number of data virtual lanes that every link between switches has for a
	// path of one level of the policy, 1 to 15, Layers how many service levels there are
	// for its layers, 1 to 16.
	VLs, Layers int
}
