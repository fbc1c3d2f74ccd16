// Package traffic shows the performance counters of ports to callers of the API and to commands:
// what they carry, and their errors.
package traffic

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// ErrNotRead is that nobody reads the counters.
var ErrNotRead = errors.New("performance counters are not read: ibwarden run reads them with --metrics")

// Source is a subnet manager that reads performance counters.
type Source interface {
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
	Sends    *float64          `json:"sends,omitempty" doc:"octets a second between the last two readings; absent where that is not known"`
	Receives *float64          `json:"receives,omitempty" doc:"octets a second"`
	Errors   uint64            `json:"errors" doc:"sum of the error counters that are known"`
	Counters map[string]uint64 `json:"counters" doc:"those that are known, by the names of the architecture; data in octets"`
	Stuck    []string          `json:"stuck,omitempty" doc:"counters at the highest value that they have room for: the true count may be higher"`
}

// errorCounters are those that Errors is the sum of. Discards and waiting are load, relay
// errors are multicast packets that nobody wanted, and VL15Dropped is management.
var errorCounters = []perfmgr.Counter{
	perfmgr.SymbolErrorCounter, perfmgr.LinkErrorRecoveryCounter, perfmgr.LinkDownedCounter, perfmgr.PortRcvErrors,
	perfmgr.PortXmitConstraintErrors, perfmgr.PortRcvConstraintErrors, perfmgr.LocalLinkIntegrityErrors,
	perfmgr.ExcessiveBufferOverrunErrors,
}

// PortOf is a reading of a port for the API; p is nil where the port is not in the
// snapshot any more.
func PortOf(r *perfmgr.Reading, p *observed.Port) PortCounters {
	out := PortCounters{Node: r.Place.Node.String(), Port: int(r.Place.Port), Age: r.Age.Round(time.Millisecond).Seconds(), Counters: map[string]uint64{}}
	if r.Fault != perfmgr.Answered {
		out.Fault = r.Fault.String()
	}
	if p != nil {
		out.Name = p.Node.Name()
		if p.Peer != nil {
			out.Peer = p.Peer.String()
		}
	}
	for c := range perfmgr.Counters {
		if n, known := r.Value(c); known {
			out.Counters[c.String()] = n
			if slices.Contains(errorCounters, c) {
				out.Errors += n
			}
			if r.Stuck(c) {
				out.Stuck = append(out.Stuck, c.String())
			}
		}
	}
	rate := func(c perfmgr.Counter) *float64 {
		if n, known := r.Rate(c); known {
			return &n
		}
		return nil
	}
	out.Sends, out.Receives = rate(perfmgr.PortXmitData), rate(perfmgr.PortRcvData)
	return out
}

// Orders of lists.
const (
	ByPlace  = "place"
	BySends  = "sends"
	ByErrors = "errors"
)

// Sort puts ports in an order: by node and port, or those first that send most or have
// most errors.
func Sort(list []PortCounters, order string) {
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
