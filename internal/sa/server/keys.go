package server

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Which P_Key a datagram goes with. There need not be a partition that everybody
// shares: the manager's port is then in each tenant's, and a host is answered over
// the one that it asked over, and told of events over one that both are in now.

// holds reports whether a port can have sent a packet of a partition: by the
// policy, or, while policy and tables are not the same, because the switch port
// before it lets the partition pass.
func (s *Server) holds(p *Port, base ib.PKeyBase) bool {
	guard := p.Port.Peer
	return p.Key(base).IsValid() || guard != nil && guard.FacesEnd() && guard.Enforces() && keyIn(guard, base).IsValid()
}

// keyIn is a port's key of a partition, as its table was read last: the full one
// where both are there, 0 for none.
func keyIn(p *observed.Port, base ib.PKeyBase) (key ib.PKey) {
	for _, k := range p.ReadPKeys() {
		if k.IsValid() && k.Base() == base {
			key |= k
		}
	}
	return key
}

// keyTo is the key that a packet to a port is to bear, by tables as they were read
// last: that of the partition that is asked for, while both ends have it, else of
// the first in the port's table that reaches it from here. 0 when there is none.
func (s *Server) keyTo(p *Port, base ib.PKeyBase) ib.PKey {
	self := s.view.Fabric.Self
	if self == nil {
		return ib.PKeyInvalid
	}
	common := func(base ib.PKeyBase) ib.PKey {
		if own := keyIn(self, base); own.IsValid() && (p.Port == self || own.Matches(keyIn(p.Port, base))) {
			return own
		}
		return ib.PKeyInvalid
	}
	if base != 0 {
		if k := common(base); k.IsValid() {
			return k
		}
	}
	for _, k := range p.PKeys {
		if k.IsValid() {
			if k = common(k.Base()); k.IsValid() {
				return k
			}
		}
	}
	return ib.PKeyInvalid
}

// reportTo is where the reports of a subscription go now; ok is false while there
// is no partition that they could go over. Of a link that knows no keys anything will do.
func (s *Server) reportTo(x *Subscription) (to mad.Address, ok bool) {
	to = x.Address
	if s.view == nil {
		return to, false
	}
	p := s.view.Owner(x.Port)
	if p == nil {
		return to, false
	}
	to.PKey = s.keyTo(p, to.PKey.Base())
	return to, to.PKey.IsValid() || x.Address.PKey == 0
}
