package server

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// aliasNeeds are the components that say which block is meant.
const aliasNeeds = sa.GUIDInfoRecordLID | sa.GUIDInfoRecordBlockNum

// aliases registers or ends alias GUIDs of the asker's own port. A GUID of zero
// asks for one of the server's choosing. An entry that cannot be registered is
// zero in the answer, the others are as they were asked for.
func (s *Server) aliases(q *request) {
	var r sa.GUIDInfoRecord
	if r.UnmarshalBinary(q.data) != nil {
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	p := q.Asker.Port
	switch {
	case !q.mask.Has(aliasNeeds):
		s.reply(q, sa.StatusInsufficientComponents, nil)
		return
	case !p.Contains(r.LID):
		s.counts.Refused++
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	case int(r.BlockNum) >= GUIDBlocks(&p.Info):
		s.reply(q, sa.StatusRequestInvalid, nil)
		return
	}
	changed := false
	for i := range r.Table.GUIDs {
		if !q.mask.Has(sa.GUIDInfoRecordGUID0 << i) {
			continue
		}
		at := int(r.BlockNum)*smp.GUIDsPerBlock + i
		wanted := ib.PortGUID(r.Table.GUIDs[i])
		switch {
		case at == 0:
			wanted = p.GUID // the port's own cannot be changed
		case at >= int(p.Info.GUIDCap):
			wanted = 0
		case q.method == mad.MethodDelete:
			s.setAlias(p.GUID, at, 0)
			changed, wanted = true, 0
		default:
			q.chosen = q.chosen || wanted == 0
			// A GUID that could be a port's own, absent today, needs trust.
			if q.Trusted || wanted == 0 || uint64(wanted)&ib.GUIDLocalBit != 0 {
				wanted = s.addAlias(p.GUID, at, wanted)
			} else {
				wanted = 0
			}
			changed = changed || wanted != 0
		}
		r.Table.GUIDs[i] = uint64(wanted)
	}
	if changed {
		s.version++
	}
	b, err := r.AppendBinary(nil)
	if err != nil {
		b = q.data // not with what was read from a datagram
	}
	s.reply(q, mad.StatusOK, b)
}

// addAlias registers an alias, one of the server's choosing for 0, and returns
// it; 0 when it is taken or there are too many.
func (s *Server) addAlias(port ib.PortGUID, at int, alias ib.PortGUID) ib.PortGUID {
	if alias == 0 {
		if alias = s.oldAlias(port, at); alias == 0 {
			alias = s.freeAlias(port, at)
		}
	}
	owner, taken := s.store.owners[alias]
	if _, fixed := s.view.Alias(alias); fixed || s.fixed(port, at) != 0 {
		return 0 // the policy's, or in its place
	}
	switch {
	case taken && owner == port && s.oldAlias(port, at) == alias:
		return alias
	case taken || s.view.Owner(alias) != nil || s.isPort(alias):
		return 0
	case s.oldAlias(port, at) == 0 && count(s.store.aliases[port], func(g ib.PortGUID) bool { return g != 0 }) >= s.config.Limits.Aliases:
		return 0
	}
	s.setAlias(port, at, alias)
	return alias
}

// isPort reports whether a port claims the GUID as its own, contested or not.
func (s *Server) isPort(guid ib.PortGUID) bool {
	for _, p := range s.view.Ports {
		if p.GUID == guid {
			return true
		}
	}
	return false
}

// aliasesOf are the aliases of a port: those of the policy, and what its host
// registered where the policy gives none.
func (s *Server) aliasesOf(port ib.PortGUID) []ib.PortGUID {
	fixed, registered := s.view.Aliases[port], s.store.aliases[port]
	if len(fixed) == 0 {
		return registered
	}
	out := make([]ib.PortGUID, max(len(fixed), len(registered)))
	copy(out, registered)
	for i, g := range fixed {
		if g != 0 {
			out[i] = g
		}
	}
	return out
}

// ownerOf is the port with an alias.
func (s *Server) ownerOf(alias ib.PortGUID) (ib.PortGUID, bool) {
	if port, fixed := s.view.Alias(alias); fixed {
		return port, true
	}
	owner, ok := s.store.owners[alias]
	return owner, ok
}

// fixed is the alias that the policy gives a port at an index, or zero.
func (s *Server) fixed(port ib.PortGUID, at int) ib.PortGUID {
	if list := s.view.Aliases[port]; at <= len(list) {
		return list[at-1]
	}
	return 0
}

func (s *Server) oldAlias(port ib.PortGUID, at int) ib.PortGUID {
	if list := s.store.aliases[port]; at <= len(list) {
		return list[at-1]
	}
	return 0
}

// setAlias enters an alias, or ends it with 0.
func (s *Server) setAlias(port ib.PortGUID, at int, alias ib.PortGUID) {
	if old := s.oldAlias(port, at); old != 0 {
		delete(s.store.owners, old)
	}
	list := s.store.aliases[port]
	for len(list) < at {
		list = append(list, 0)
	}
	list[at-1] = alias
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	if s.store.aliases[port] = list; len(list) == 0 {
		delete(s.store.aliases, port)
	}
	if alias != 0 {
		s.store.owners[alias] = port
	}
}

// freeAlias makes a GUID that nobody has, with the bit that tells of GUIDs that
// a manager assigned.
func (s *Server) freeAlias(port ib.PortGUID, at int) ib.PortGUID {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(port)|ib.GUIDLocalBit)
	for salt := 0; ; salt++ {
		b[3], b[4] = byte(at), byte(salt)
		guid := ib.PortGUID(binary.BigEndian.Uint64(b[:]))
		if _, taken := s.ownerOf(guid); !taken && !s.isPort(guid) {
			return guid
		}
		if salt == 255 {
			b[2]++
		}
	}
}
