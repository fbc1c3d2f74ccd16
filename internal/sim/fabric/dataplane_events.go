package fabric

// What an event does when its time has come. The kinds begin high above those of
// the fabric around.
const (
	dataplaneKindArrive TimelineKind = 128 + iota // a packet is at a port
	kindSend                                      // a port may send its next packet
	kindAge                                       // packets that wait at a port may be too old
	kindDevice                                    // an end node's retry timers
	kindPeriod                                    // the flow-control period of a port ends
)

// The virtual lanes of the queue, behind two of the fabric around.
const (
	laneData TimelineLane = 2 + iota // a link and a packet's length ahead
	laneSend                         // a packet's length ahead
)
