package sma

import (
	"maps"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// health is what an end port says about itself, and what it can say about that.
type health struct {
	code  smp.DiagCode // what is wrong with it; 0 when nothing is
	stage smp.DiagCode // what it is still busy with, told while nothing is wrong
	// blocks are those of VendorDiag by index; other indexes read as zeros, without
	// a next block.
	blocks map[uint16]smp.VendorDiag
}

// diagnose brings DiagCode up to date, and takes a port that can no longer carry
// data back to Initialize: a link goes down for that and trains again. The agent
// answers all the same: nobody could read the code otherwise.
func (a *Agent) diagnose(p *port, n ib.PortNum) {
	code := p.health.code
	if code == 0 {
		code = p.health.stage
	}
	p.info.DiagCode = code
	switch {
	case p.kind == basePort0 && !code.IsOperative():
		a.changeState(p, n, smp.PortInit)
	case p.kind == basePort0:
		a.changeState(p, n, smp.PortActive)
	case code.IsOperative() || p.info.PortState <= smp.PortInit:
	case p.kind.hasCable():
		a.moveLink(p, n, smp.PhysPolling)
	default:
		a.changeState(p, n, smp.PortInit)
	}
}

// SetDiagCode gives the end port that port n belongs to another state of health. One
// that says self-test, initializing or hard failure falls back to Initialize and
// goes no further until it says something else.
func (a *Agent) SetDiagCode(_ time.Duration, n ib.PortNum, code smp.DiagCode) []Effect {
	a.effects = a.effects[:0]
	if p := a.endPort(n); p != nil {
		p.health.code = code
		a.diagnose(p, a.endNumber(n))
	}
	return a.effects
}

// SetVendorDiag gives the end port that port n belongs to a block of diagnostic data.
func (a *Agent) SetVendorDiag(n ib.PortNum, index uint16, block smp.VendorDiag) {
	p := a.endPort(n)
	if p == nil {
		return
	}
	p.health.blocks = maps.Clone(p.health.blocks) // it may be that of a Config
	if p.health.blocks == nil {
		p.health.blocks = make(map[uint16]smp.VendorDiag)
	}
	p.health.blocks[index] = block
}

// SetSelfTest says whether the device still tests itself. While it does, its end
// ports say so and none of its links trains.
func (a *Agent) SetSelfTest(_ time.Duration, on bool) []Effect {
	a.effects = a.effects[:0]
	a.testing = on
	for i := range a.ends() {
		if p := a.port(ib.PortNum(i)); p != nil {
			p.health.stage = 0
			if on {
				p.health.stage = smp.DiagSelfTest
			}
			a.diagnose(p, ib.PortNum(i))
		}
	}
	return a.effects
}

// AnswersKeepSL reports whether Options says so.
func (a *Agent) AnswersKeepSL() bool { return a.options.AnswersKeepSL }

// TestsItself reports whether SetSelfTest says so.
func (a *Agent) TestsItself() bool { return a.testing }

// SetTraining says whether the link at port n is training. An end port says so.
func (a *Agent) SetTraining(n ib.PortNum, on bool) {
	p := a.port(n)
	if p == nil || !p.kind.isEnd() || !p.kind.hasCable() || a.testing {
		return
	}
	p.health.stage = 0
	if on && p.info.PortState == smp.PortDown && p.info.PortPhysicalState == smp.PhysPolling {
		p.health.stage = smp.DiagInitializing
	}
	a.diagnose(p, n) // no state changes: a link that trains is down, and stays so
}

func (a *Agent) serveVendorDiag(r request) mad.Status {
	switch {
	case r.set:
		return mad.StatusUnsupportedAttrib
	case r.AttributeModifier > maxVendorModifier:
		return mad.StatusInvalidField
	}
	d := r.end.health.blocks[uint16(r.AttributeModifier)]
	return done(d.Encode(&r.Data))
}
