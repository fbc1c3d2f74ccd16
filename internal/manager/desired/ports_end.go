package desired

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// EnterManager wants of an end port where the manager is, and how to reach it: on which service level.
func EnterManager(want *observed.DesiredPort, s *policy.Settings, prefix uint64, manager ib.LID, level ib.SL) {
	want.Elements |= observed.ElementGIDPrefix | observed.ElementMasterSMLID |
		observed.ElementMasterSMSL | observed.ElementSubnetTimeOut
	want.Info.GIDPrefix, want.Info.MasterSMLID = prefix, manager
	want.Info.MasterSMSL, want.Info.SubnetTimeOut = level, s.SubnetTimeOut
}

// MKeyGuard is M_KeyProtectBits and M_KeyLeasePeriod as a policy asks for them.
type MKeyGuard struct {
	Bits  uint8
	Lease uint16 // seconds, 0 for no end
}

// MKeyGuardOf is that of a policy, where the profile asks for at least so many bits: a
// policy may ask for more protection, and not for less.
func MKeyGuardOf(p *policy.Policy, least uint8) MKeyGuard {
	s := p.Asked()
	return MKeyGuard{max(least, s.MKeyProtectBits), s.MKeyLeasePeriod}
}

// SharedKeyBits is the least protection where all ports have one M_Key: it hides the key
// from requesters that do not know it and lets everyone read the rest.
const SharedKeyBits = 1

// Warnings say what it costs to ask for less than is safe.
func (g MKeyGuard) Warnings(s *policy.Settings) (out []string) {
	if asked := s.MKeyProtectBits; asked != 0 && asked < g.Bits {
		out = append(out, fmt.Sprintf("m_key_protection_level %d is less than the profile asks: ports get %d", asked, g.Bits))
	}
	if g.Lease != 0 {
		out = append(out, fmt.Sprintf("m_key_lease_period %d: a host that sends a port one packet with a wrong M_Key, and keeps the manager from it for %d s, can read its key", g.Lease, g.Lease))
	}
	return out
}

// Give wants a port to hold an M_Key under the guard.
func (g MKeyGuard) Give(want *observed.DesiredPort, key ib.MKey) {
	want.Elements |= observed.ElementMKey | observed.ElementMKeyProtectBits | observed.ElementMKeyLeasePeriod
	want.Info.MKey, want.Info.MKeyProtectBits, want.Info.MKeyLeasePeriod = key, g.Bits, g.Lease
}

// LimitLinks wants both ends of single links to be no wider or faster than a policy
// says.
func LimitLinks(f *observed.Fabric, links []policy.LinkLimit, d *observed.Desired) (warnings []string) {
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	for _, l := range links {
		at := facts.PortAt(f, l.At)
		if at == nil {
			warn("links: no port %s", l.At)
			continue
		}
		for _, end := range []*observed.Port{at, at.Peer} {
			if end != nil && end.Reached && !LimitLink(end, l.Width, l.Speed, d) {
				warn("links: %s cannot be limited to %s, %s: left as it is", end, l.Width, l.Speed)
			}
		}
	}
	return warnings
}

// SamePortSettings reports whether two policies ask the same of links and devices.
func SamePortSettings(p, q *policy.Policy) bool {
	a, b := p.Asked(), q.Asked()
	drained := func(x, y policy.Drained) bool { return x.At == y.At }
	return a.Equal(&b) && slices.EqualFunc(p.Drained, q.Drained, drained) && slices.EqualFunc(p.Links, q.Links, func(x, y policy.LinkLimit) bool {
		return x.At == y.At && x.Width == y.Width && x.Speed == y.Speed
	})
}
