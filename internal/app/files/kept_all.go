package files

import (
	"maps"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
)

// All is what the managers of a subnet keep in a place that they share.
type All struct {
	Assigned   desired.Assigned
	Registered Registered
	// Book is the key book (mkey.Book) as JSON, which has no key in it, and Secret the sum
	// of the master secret that it belongs to; empty where ports get no keys of their own.
	Book   []byte
	Secret string
	// Cables is the list of cables (cables.List) as text; empty for none.
	Cables []byte
}

// ReaderOf reads the state file of a manager; nil where it has none.
func ReaderOf(path string, saKey ib.SMKey) func() (All, error) {
	if path == "" {
		return nil
	}
	return func() (a All, err error) {
		if a.Assigned, err = LoadState(path); err == nil {
			a.Registered, _, err = LoadRegistered(path, saKey)
		}
		return a, err
	}
}

// CopyState is a copy of what was assigned, which its owner may go on to change.
func CopyState(a desired.Assigned) desired.Assigned {
	a.LIDs, a.PKeys, a.Forgets = maps.Clone(a.LIDs), maps.Clone(a.PKeys), maps.Clone(a.Forgets)
	a.Fenced, a.Fences, a.Names = maps.Clone(a.Fenced), maps.Clone(a.Fences), maps.Clone(a.Names)
	return a
}
