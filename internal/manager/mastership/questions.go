package mastership

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Question is a request for SMInfo that is to be answered.
type Question struct {
	SMP  mad.SMP
	SLID ib.LID
}

// Questions are those that wait until it is known who asks.
type Questions []Question

// questionsMax is the most questions that are kept: there is one from each place, and
// those of managers are few.
const questionsMax = 64

// Keep keeps a question for later, the last from each place.
func (x *Questions) Keep(p *mad.SMP, slid ib.LID) {
	for i := range *x {
		if q := &(*x)[i]; q.SLID == slid && q.SMP.Class == p.Class && q.SMP.HopCount == p.HopCount && q.SMP.ReturnPath == p.ReturnPath {
			q.SMP = *p
			return
		}
	}
	if len(*x) < questionsMax {
		*x = append(*x, Question{*p, slid})
	}
}
