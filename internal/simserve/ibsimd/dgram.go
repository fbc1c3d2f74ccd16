// dgram*.go: provides datagram sockets, abstract Unix and UDP, for a server of many
// small datagrams: addresses as bytes, several datagrams per system call, and cheap
// waits.
//
// Only Poll waits. An operation that could not be done at once
// (a full socket, nothing to read) is reported as a count, not as an error.
// The datagrams of a Receiver are valid until its next use. Nothing here is safe for
// concurrent use.
//
// It works on Linux only; on other systems Listen and EventCounter return an error.

package ibsimd

import (
	"math"
	"time"
)

// DgramBuffer is asked for in bytes; the kernel may give less.
const DgramBuffer = 4 << 20

// AwaitTime is how long Await waits: the kernel may round it up to its next tick or
// two, some milliseconds.
const AwaitTime = time.Millisecond

// Forever is a wait that only a packet ends. To the kernel it is less work than
// one that ends.
const Forever = time.Duration(math.MaxInt64)
