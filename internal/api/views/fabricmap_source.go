package views

import (
	"context"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// MapSource knows what the subnet manager holds the fabric against.
type MapSource interface {
	// Cabling is the list of cables and the fences of the last pass.
	Cabling(ctx context.Context) (*Cabling, error)
}

// Cabling is what should be cabled to what, and what is kept out.
type Cabling struct {
	// MapList is the list of cables; nil where the manager has none. The same list is the same
	// pointer.
	List *MapList
	// Fences are the switch ports behind which nobody is let into the subnet.
	Fences []Fence
	// Differences are where the fabric as it was read last is not as the list says. It may
	// take a second for a large fabric.
	Differences func(f *observed.Fabric) []Difference
}

// Fence is a fenced switch port.
type Fence struct {
	At     observed.Place
	Reason string
}

// MapList is a list of cables.
type MapList struct {
	Devices []MapDevice
	Cables  []Cable
}

// MapDevice is a device that is listed.
type MapDevice struct {
	GUID ib.NodeGUID
	Type ib.NodeType
	Name string
}

// Cable is a cable that is listed, by its ends.
type Cable struct{ A, B observed.Place }

// Difference is a place at which the fabric is not as the list of cables has it.
type Difference struct {
	Node string `json:"node" doc:"node GUID"`
	Name string `json:"name" doc:"what the list calls the device, or what it says of itself where it is not listed"`
	Port int    `json:"port" doc:"0 where the device is meant"`
	Kind string `json:"kind" enum:"missing,unlisted,moved,device-missing,device-unlisted,device-changed,renamed" doc:"what was listed was not found; something was found where nothing is listed; something else was found; and the same of devices"`
	Text string `json:"text" doc:"what is different, in words"`
	// Ports are those that the list has: what is found there says itself who it is.
	Ports []string `json:"ports,omitempty" doc:"GUIDs of the end ports that the list has at this device or cable"`
}
