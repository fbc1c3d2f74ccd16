package fabric

// What an event does when its time has come; dataplane has other kinds. Its subject is a packet, a node, a
// port or a function, by its index.
const (
	kindArrive TimelineKind = iota // a packet is at a node
	kindServe                      // an agent has found the time for a packet
	kindTimer                      // an agent's own deadline
	kindTrain                      // a port looks for a peer to train with
	kindCall                       // a function of the caller's
	kindLaunch                     // a manager's program has written a packet
	kindHand                       // a manager's program has read a packet
)

// The lanes of the queue that subnet management has; dataplane has others.
const (
	laneHop   TimelineLane = iota // one link ahead
	laneServe                     // one agent delay ahead
)
