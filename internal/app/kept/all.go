package kept

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
)

// All is what the managers of a subnet keep in a place that they share.
type All struct {
	Assigned   desired.Assigned
	Registered Registered
}

// In reads the state file of a manager.
func In(path string, saKey ib.SMKey) func() (All, error) {
	return func() (a All, err error) {
		if a.Assigned, err = LoadState(path); err == nil {
			a.Registered, _, err = LoadRegistered(path, saKey)
		}
		return a, err
	}
}
