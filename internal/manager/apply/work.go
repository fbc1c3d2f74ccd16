package apply

import "fmt"

// Work says what a manager is in the middle of.
type Work struct {
	Phase string // in words
	// Ports is at how many ports of Of all that is to be written was written and
	// read back; both are 0 where nothing is being written.
	Ports, Of int
	// Stands reports whether a policy has been carried out whole before, Keyed that in
	// this pass ports were given M_Keys so far, Narrows that what a policy takes away
	// is being taken away.
	Stands, Keyed, Narrows bool
}

// String says what is left half done when the manager goes no further.
func (w Work) String() string {
	stands := "nothing was written"
	switch {
	case w.Of > 0:
		return fmt.Sprintf("%s: %d of %d ports written; what is to be taken away goes first, so that nobody reaches more than before or than the policy gives, and what it gives is not all there: run again to finish",
			w.Phase, w.Ports, w.Of)
	case w.Narrows:
		return w.Phase + ": not all that the policy takes away is taken away, and nothing was given: run again to finish"
	case w.Stands:
		stands = "the fabric is as the last verdict says"
	case w.Keyed:
		stands = "ports have their M_Keys, and nothing else was written"
	}
	return w.Phase + ": the fabric was being read; " + stands + ": run again to finish"
}
