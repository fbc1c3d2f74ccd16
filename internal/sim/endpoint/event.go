package endpoint

import "github.com/ibwarden/ibwarden/ib"

// EventKind is what an asynchronous event is about.
type EventKind uint8

// The kinds of event. Those of a port are announced by the owner of the agent, those of a
// QP by this package.
const (
	// EventPKeyChange: the P_Key table of the port changed. A program that caches entries
	// has to read them again.
	EventPKeyChange EventKind = iota + 1
	EventPortActive
	EventPortError
	EventLIDChange
	EventGIDChange
	EventSMChange
	// EventClientReregister: subscriptions and memberships have to be renewed.
	EventClientReregister
	// EventQPRequestError: the QP is in error over a request that it refused.
	EventQPRequestError
	// EventQPAccessError: the QP is in error over memory that it refused.
	EventQPAccessError
)

// Event is something that happened to a device.
type Event struct {
	Kind EventKind
	Port ib.PortNum // of the events of a port
	QP   *QP        // of the events of a QP
}

// Announce queues an event of port n for the device's consumer. It changes
// nothing else. The same event is not queued twice in a row.
func (d *Device) Announce(kind EventKind, n ib.PortNum) { d.raise(Event{Kind: kind, Port: n}) }

func (d *Device) raise(e Event) {
	switch last := d.events.Len() - 1; {
	case last >= 0 && *d.events.At(last) == e:
	case last+1 == MaxEvents:
		d.lostEvents++
	default:
		d.events.Push(e)
	}
}

// NextEvent takes the oldest event that was not taken yet.
func (d *Device) NextEvent() (Event, bool) {
	if d.events.Len() == 0 {
		return Event{}, false
	}
	return d.events.Pop(), true
}

// LostEvents is how many events found MaxEvents queued before them.
func (d *Device) LostEvents() uint64 { return d.lostEvents }
