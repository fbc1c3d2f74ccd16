package dgram

import (
	"math"
	"time"
)

// Buffer is asked for in octets; the kernel may give less.
const Buffer = 4 << 20

// AwaitTime is how long Await waits: the kernel may round it up to its next tick or
// two, some milliseconds.
const AwaitTime = time.Millisecond

// Forever is a wait that only a packet ends. To the kernel it is less work than
// one that ends.
const Forever = time.Duration(math.MaxInt64)
