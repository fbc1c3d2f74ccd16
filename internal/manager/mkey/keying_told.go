package mkey

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// GivenKeys is an event: ports were given M_Keys.
type GivenKeys struct{ Ports, Failures int }

// String says it for people.
func (e GivenKeys) String() string {
	return fmt.Sprintf("M_Keys: set on %d ports, not set on %d", e.Ports-e.Failures, e.Failures)
}

// LockedError says which ports obey an M_Key that the manager does not know. A
// manager that may not write to switches, or to its own port, manages nothing.
type LockedError struct{ Ports []string }

// maxLockedNamed bounds the ports that a LockedError names.
const maxLockedNamed = 16

// Error names the ports, and what helps.
func (e *LockedError) Error() string {
	named := strings.Join(e.Ports[:min(len(e.Ports), maxLockedNamed)], ", ")
	if more := len(e.Ports) - maxLockedNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("guarded by M_Keys that this manager does not have: %s (give it the data directory or the keys of the manager that was here before; a power cycle clears the keys of a device)", named)
}

// LockedOut returns a LockedError when the manager's own port, or the port behind it, did
// not answer.
func LockedOut(f *observed.Fabric) error {
	switch {
	case f.Self == nil:
		return &LockedError{[]string{"the manager's own port (no answer)"}}
	case !f.Self.InfoRead:
		return &LockedError{[]string{"the manager's own port " + f.Self.String() + " (it says who it is, and no more)"}}
	case f.Self.Silent:
		return &LockedError{[]string{"the device behind the manager's own port " + f.Self.String() + " (no answer)"}}
	}
	return nil
}

// Declared says who belongs behind a place by the list of cables that holds when
// it is asked.
func Declared(list func() *cables.List) func(observed.Place) (ID, bool) {
	return func(at observed.Place) (ID, bool) {
		l := list()
		peer, ok := l.Peer(observed.Place(at))
		if !ok {
			return ID{}, false
		}
		if d, _ := l.Device(peer.Node); d.Type == ib.NodeSwitch {
			peer.Port = 0
		}
		return ID{Node: peer.Node, Port: l.PortGUID(peer)}, true
	}
}
