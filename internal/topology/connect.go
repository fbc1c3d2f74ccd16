package topology

import (
	"fmt"
	"strings"
)

// connect lays the cables that the port lines describe.
func (r *reader) connect() {
	for _, rec := range r.records {
		if r.byID[rec.node.ID] != rec {
			continue // a second node of this id: a fault of its own
		}
		for i := range rec.lines {
			l := &rec.lines[i]
			if !l.isListed() || l.isAlias {
				continue
			}
			if err := r.cable(rec, l); err != nil {
				r.faultAt(l.place, "%w", err)
			}
		}
	}
}

// cable lays the cable of one port line.
func (r *reader) cable(rec *record, l *portLine) error {
	if strings.Contains(l.remote, "@") {
		return r.cableToAlias(rec, l)
	}
	remote := r.byID[l.remote]
	if remote == nil {
		return fmt.Errorf("port %d is cabled to %q: no node has this id", l.port, l.remote)
	}
	if int(l.remotePort) > remote.node.NumPorts() {
		return fmt.Errorf("port %d is cabled to port %d of %q, which has %d ports", l.port, l.remotePort, l.remote, remote.node.NumPorts())
	}
	back := &remote.lines[l.remotePort]
	switch {
	case !back.isListed():
		return fmt.Errorf("port %d is cabled to port %d of %q, which lists no such port: want a line for it at %v",
			l.port, l.remotePort, l.remote, remote.place)
	case back.isAlias:
		return fmt.Errorf("port %d is cabled to port %d of %q, which has an alias: want \"module@alias\"", l.port, l.remotePort, l.remote)
	case r.byID[back.remote] != rec || back.remotePort != l.port:
		return fmt.Errorf("port %d is cabled to port %d of %q, which is cabled to port %d of %q at %v",
			l.port, l.remotePort, l.remote, back.remotePort, back.remote, back.place)
	}
	if err := r.remoteGUID(remote, back, l); err != nil {
		return err
	}
	if rec.node.Ports[l.port].Peer == remote.node {
		return nil // laid from the other end
	}
	return Connect(rec.node, l.port, remote.node, l.remotePort)
}

// remoteGUID takes the GUID that l gives to the remote port, whose own line is
// back.
func (r *reader) remoteGUID(remote *record, back, l *portLine) error {
	port := remote.node.endPort(int(l.remotePort))
	if l.remoteGUID == 0 || port.GUID == l.remoteGUID {
		return nil
	}
	if back.hasGUID {
		return fmt.Errorf("port GUID %v of port %d of %q: its own line gives %v at %v", l.remoteGUID, l.remotePort, l.remote, port.GUID, back.place)
	}
	if remote.node.IsEndPort(int(l.remotePort)) {
		port.GUID = l.remoteGUID
	}
	return nil
}

// cableToAlias lays a cable to a port by its alias; the other end has no line
// that says so.
func (r *reader) cableToAlias(rec *record, l *portLine) error {
	alias, ok := r.aliases[l.remote]
	if !ok {
		return fmt.Errorf("port %d is cabled to alias %q: no port has this alias", l.port, l.remote)
	}
	if at := alias.line.place; at.File == l.place.File && at.Line > l.place.Line {
		r.warnAt(l.place, "alias %q is used before line %d gives it: ibsim does not find it", l.remote, at.Line)
	}
	return Connect(rec.node, l.port, alias.record.node, alias.line.port)
}
