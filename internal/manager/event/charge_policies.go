package event

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// OtherPolicyGrace is how long partners have to have another policy before that is told, and before
// it is told of others: a change reaches one of them first.
const OtherPolicyGrace = 10 * time.Second

// OtherPolicy reports whether managers that share the secret have proved that their policy is
// another than the one here.
type OtherPolicy struct {
	Managers []Master // the first of them
	Count    int
}

// SamePolicy reports whether nobody has another policy any more, after OtherPolicy.
type SamePolicy struct{}

func (e OtherPolicy) String() string {
	return fmt.Sprintf("another policy than here is in force at %s: who takes over gives no port anything new until the policy is read again", namedMasters(e.Managers))
}

func (SamePolicy) String() string {
	return "no manager that answers has another policy any more"
}

// policyWatch is what is known of the policies of partners.
type policyWatch struct {
	off  bool   // somebody has another
	told string // who was told of, with what; empty for nobody
	next time.Duration
}

// seePolicies looks who has another policy.
func (w *MasterWatch) seePolicies(now time.Duration, known []observed.SubnetManager) []Event {
	var others []Master
	var who string
	for i := range known {
		m := &known[i]
		if m.Counts() && m.Policy == observed.PolicyOther && m.Answered && m.Missed == 0 && m.Silent <= StaleAnswer {
			others = append(others, Master{m.Port, m.Name, true})
			who += fmt.Sprintf("%v %x ", m.Port, m.PolicySum)
		}
	}
	w.status.OtherPolicies = len(others)
	x := &w.policyWatch
	if len(others) == 0 {
		told := x.told != ""
		*x = policyWatch{}
		if told {
			return []Event{SamePolicy{}}
		}
		return nil
	}
	if !x.off {
		x.off, x.next = true, now+OtherPolicyGrace
	}
	if now < x.next || who == x.told {
		return nil
	}
	x.told, x.next = who, now+OtherPolicyGrace
	return []Event{OtherPolicy{others[:min(len(others), mastersMax)], len(others)}}
}
