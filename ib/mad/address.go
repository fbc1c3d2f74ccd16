package mad

import "github.com/ibwarden/ibwarden/ib"

// Address is where a general management datagram came from, or is to go: what
// is in the packet headers around it. Links that do not carry a header
// leave its fields zero.
type Address struct {
	LID  ib.LID
	QP   ib.QPN
	SL   ib.SL
	PKey ib.PKey // 0 for unknown; to be sent with the first of the port's keys
	// GID is that of the other side's global route header; zero without one.
	GID ib.GID
}
