package mastership

import "time"

// Wait is the wait for packets that an earlier manager has sent. Until its end nothing
// is written, and nothing that a manager writes is read for good: a late copy of a write
// could change it afterwards, and nobody would know. What no manager writes, who is there
// and how the cables run, is read meanwhile.
type Wait struct {
	Began bool          // the engine was told the time
	Until time.Duration // the end of the wait
	// Stale reports whether the sweep under way began before the end of the wait: PortInfo
	// and SwitchInfo are read again after it, and tables not before.
	Stale bool
	// AtStart reports whether it is the wait of a start, which ends early on a subnet that
	// nobody has managed; Trial, that the tables are read to find that out.
	AtStart, Trial bool
	// Abandon reports whether what is being read was begun as standby.
	Abandon bool
}
