package sm

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

func (e *Engine) startElection()                                           { e.state = stateElecting }
func (e *Engine) elected(now time.Duration)                                { e.pursue(now) }
func (e *Engine) pollMaster()                                              {}
func (e *Engine) receiveSMInfo(now time.Duration, p *mad.SMP, slid ib.LID) {}
