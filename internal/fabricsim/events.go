package fabricsim

import (
	"github.com/ibwarden/ibwarden/internal/fabricsim/timeline"
)

// What an event does when its time has come. Its subject is a packet, a node, a
// port or a function, by its index.
const (
	kindArrive timeline.Kind = iota // a packet is at a node
	kindServe                       // an agent has found the time for a packet
	kindTimer                       // an agent's own deadline
	kindTrain                       // a port looks for a peer to train with
	kindCall                        // a function of the caller's

	kindDataArrive // a data packet is at a port
	kindSend       // a port may send its next data packet
	kindAge        // data packets that wait at a port may be too old
	kindDevice     // an end node's retry timers
)

// The lanes of the queue.
const (
	laneHop   timeline.Lane = iota // one link ahead
	laneServe                      // one agent delay ahead
	laneData                       // a link and a packet's length ahead
	laneSend                       // a packet's length ahead
)

// Offsets in a subnet-management packet of what a packet on its way needs; the
// rest is decoded where the packet is taken in.
const (
	offClass       = 1
	offMethod      = 3
	offAttributeID = 16
)
