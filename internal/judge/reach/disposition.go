package reach

import "fmt"

// Disposition is the outcome of a packet.
type Disposition uint8

// The dispositions; the zero value is Unknown, which is never a pass.
const (
	Unknown          Disposition = iota // something that decides was not read
	Delivered                           // the receiving port takes it
	SourceKey                           // the sender's table does not hold the key
	LinkState                           // a port on the way is not Active, or not Armed on arrival
	DeadEnd                             // nothing was found behind a port on the way
	NoLane                              // the service level has no virtual lane in operation
	InboundRaw                          // the raw filter of a switch port, on arrival
	OutboundRaw                         // the raw filter of a switch port, on departure
	InboundKey                          // a switch port refuses the key on arrival
	OutboundKey                         // a switch port refuses the key on departure
	NoRoute                             // no exit in a forwarding table
	Loop                                // it goes round, or back where it came from
	WrongDestination                    // it ends at a port that does not own the LID
	DestinationKey                      // the receiver's table has no match
	DestinationQKey                     // QP1 takes its own Q_Key only
	dispositions
)

var dispositionNames = [dispositions]string{
	"unknown", "delivered", "source-key", "link-state", "dead-end", "no-vl", "inbound-raw", "outbound-raw",
	"inbound-key", "outbound-key", "no-route", "loop", "wrong-destination", "destination-key", "destination-qkey",
}

// String is the disposition as it stands in reports.
func (d Disposition) String() string {
	if d >= dispositions {
		return dispositionNames[Unknown]
	}
	return dispositionNames[d]
}

// MarshalText prints the disposition as String does.
func (d Disposition) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Dispositions lists all of them, in the order of their numbers.
func Dispositions() []Disposition {
	out := make([]Disposition, dispositions)
	for i := range out {
		out[i] = Disposition(i)
	}
	return out
}

// Service is the transport that a packet belongs to.
type Service uint8

// The services.
const (
	UD Service = iota
	RC
	UC
	RD
	Raw // no transport header, and so no key
)

var serviceNames = []string{"UD", "RC", "UC", "RD", "raw"}

// ParseService reads what String prints.
func ParseService(s string) (Service, error) {
	for i, name := range serviceNames {
		if s == name {
			return Service(i), nil
		}
	}
	return 0, fmt.Errorf("service %q: want one of %q", s, serviceNames)
}

// String is UD, RC, UC, RD or raw.
func (s Service) String() string {
	if int(s) >= len(serviceNames) {
		return fmt.Sprintf("service %d", uint8(s))
	}
	return serviceNames[s]
}

// MarshalText prints the service as String does.
func (s Service) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
