package sma

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Levels of PortInfo.MKeyProtectBits.
const (
	protectNothing uint8 = 0 // any Get passes
	protectKey     uint8 = 1 // any Get passes, the key is not shown
	protectAll     uint8 = 2 // a Get needs the key too; so it does at 3
)

// checkMKey decides whether a Get, Set or TrapRepress may pass the M_Key of the
// port that it reached and, for PortInfo of another port of a CA or router, the
// key of that port as well. A packet that may not is counted and reported.
func (a *Agent) checkMKey(r request) bool {
	guards := [2]*port{r.end, r.end}
	if r.AttributeID == smp.AttrPortInfo {
		if _, p, _ := a.selected(r); p != nil && p.kind.isEnd() {
			guards[1] = p
		}
	}
	for _, g := range guards {
		if !g.admits(r.SMP) {
			a.refuse(r, g)
			return false
		}
	}
	// Only a packet that passed every check proves that the manager is there.
	for _, g := range guards {
		if g.info.MKey != 0 && g.info.MKey == r.MKey {
			g.leased = false
		}
	}
	return true
}

// admits compares a packet with the key of the port.
func (p *port) admits(m *mad.SMP) bool {
	return p.info.MKey == 0 || p.info.MKey == m.MKey ||
		m.Method == mad.MethodGet && p.info.MKeyProtectBits < protectAll
}

// shownMKey is the M_Key that an answer with the PortInfo of p may hold.
func (p *port) shownMKey(m *mad.SMP) ib.MKey {
	if p.info.MKey != m.MKey && p.info.MKeyProtectBits != protectNothing {
		return 0
	}
	return p.info.MKey
}

// refuse counts a packet at the port that it reached, starts the lease of the
// key that it did not have, and reports it.
func (a *Agent) refuse(r request, guard *port) {
	count(&r.end.info.MKeyViolations)
	if period := guard.info.MKeyLeasePeriod; period != 0 && !guard.leased {
		guard.leased = true
		guard.leaseEnd = r.now + time.Duration(period)*time.Second
	}
	d := smp.BadMKeyDetails{
		LID:               r.from.SLID,
		Method:            r.Method,
		AttributeID:       r.AttributeID,
		AttributeModifier: r.AttributeModifier,
		MKey:              r.MKey,
	}
	if r.Class == mad.ClassSubnDirected {
		d.DRNotice = true
		d.DrSLID = r.DrSLID
		d.DRHopCount = r.HopCount & mad.MaxHops
		d.DRPathTruncated = r.HopCount > smp.NoticeReturnPathSize
		copy(d.DRNoticeReturnPath[:], r.ReturnPath[:])
	}
	a.raise(r.now, a.endNumber(r.from.Port), smp.TrapBadMKey, &d)
}

// count adds one to a counter that stops at its highest value.
func count(counter *uint16) {
	if *counter != 0xFFFF {
		*counter++
	}
}

// expireLease ends a lease whose time has come: the key stays, and protects
// nothing any more.
func (p *port) expireLease(now time.Duration) {
	if p.leased && now >= p.leaseEnd {
		p.leased = false
		p.info.MKeyProtectBits = protectNothing
	}
}
