// This file shows the performance counters of ports to callers of the API and to commands:
// what they carry, and their errors.

package views

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// ErrNotRead is that nobody reads the counters.
var ErrNotRead = errors.New("performance counters are not read: ibwarden run reads them with --metrics")

// CountersSource is a subnet manager that reads performance counters.
type CountersSource interface {
	// Counters are the ports as they were read last; ErrNotRead where nobody asked for it.
	Counters(ctx context.Context) ([]PortCounters, error)
}

// PortCounters is a port with its counters.
type PortCounters struct {
	Node     string            `json:"node" doc:"node GUID"`
	Name     string            `json:"name" doc:"what the node says of itself"`
	Port     int               `json:"port"`
	Peer     string            `json:"peer,omitempty" doc:"what is at the other end of its cable"`
	Fault    string            `json:"fault,omitempty" doc:"why nothing is known"`
	Age      float64           `json:"age" doc:"seconds since it was read"`
	Sends    *float64          `json:"sends,omitempty" doc:"bytes a second between the last two readings; absent where that is not known"`
	Receives *float64          `json:"receives,omitempty" doc:"bytes a second"`
	Errors   uint64            `json:"errors" doc:"sum of the error counters that are known"`
	Counters map[string]uint64 `json:"counters" doc:"those that are known, by the names of the architecture; data in bytes"`
	Stuck    []string          `json:"stuck,omitempty" doc:"counters at the highest value that they have room for: the true count may be higher"`
}

// Orders of lists.
const (
	CountersByPlace = "place"
	BySends         = "sends"
	ByErrors        = "errors"
)

// SortCounters puts ports in an order: by node and port, or those first that send most or have
// most errors.
func SortCounters(list []PortCounters, order string) {
	slices.SortFunc(list, func(a, b PortCounters) int {
		by := 0
		switch order {
		case BySends:
			by = cmp.Compare(value(b.Sends), value(a.Sends))
		case ByErrors:
			by = cmp.Compare(b.Errors, a.Errors)
		}
		return cmp.Or(by, cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
	})
}

func value(n *float64) float64 {
	if n == nil {
		return -1
	}
	return *n
}
