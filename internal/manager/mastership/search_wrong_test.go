package mastership_test

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/store"
)

// wrong is a fault of the managers or of the store that is put in on purpose, to see
// that the search finds it.
type wrong uint8

const (
	nothing          wrong = iota
	mastersUnseen          // a manager does not see that another is master
	othersFirst            // everybody takes everybody else for higher
	patience               // a master that is gone is not given up for long
	endUnseen              // a master does not learn that its offer was taken
	stepsDownEarly         // a master does not wait for an answer to its offer
	everybodyCounts        // whoever answers counts
	writesOn               // who is not master any more goes on writing
	epochKept              // taking the store over does not change its epoch
	epochsUncompared       // the store takes whatever comes
	storeOnce              // a service takes the store over once in a mastership
)

func (x wrong) String() string {
	return [...]string{"nothing", "mastersUnseen", "othersFirst", "patience", "endUnseen", "stepsDownEarly", "everybodyCounts", "writesOn", "epochKept", "epochsUncompared", "storeOnce"}[x]
}

// config is what a manager is told.
func (x wrong) config(c *mastership.ElectionConfig) {
	switch x {
	case everybodyCounts:
		c.Named, c.Trusted = false, nil
	case patience:
		c.Polls = 100
	}
}

// others are those that a manager decides about.
func (x wrong) others(found []mastership.Remote) []mastership.Remote {
	for i := range found {
		switch info := &found[i].Info; {
		case x == mastersUnseen && info.SMState == smp.SMMaster:
			info.SMState = smp.SMNotActive
		case x == othersFirst:
			info.Priority = 15
		}
	}
	return found
}

// acquire is the next epoch.
func (x wrong) acquire(last store.Epoch) store.Epoch {
	if x == epochKept && last > 0 {
		return last
	}
	return last + 1
}

// allowed is whether the store takes a transaction.
func (x wrong) allowed(c *store.Commit, s *store.State) error {
	if x == epochsUncompared {
		c.Epoch = s.Epoch
		c.After = s.Revision
	}
	if err := c.Check(); err != nil {
		return err
	}
	return c.Allowed(s)
}
