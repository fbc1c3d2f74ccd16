package mkey

import "errors"

// lockout is what becomes of a manager whose keys the devices do not accept. Another manager
// that shares the store may have given them keys since this one last read it. It stored
// them before it wrote them: if they are its keys, they are in the store by now.
type lockout struct {
	merged uint64 // news from other managers when the sweep under way began
	why    error  // the devices that do not accept the keys; nil when nobody waits to know
	unsure bool   // until it is known for good, or another sweep begins
	// Listed reports whether there is another list of cables than when the sweep under way began: a
	// key goes where the list has its port, so that one that was known may let the manager in.
	Listed bool
}

// Unsure reports whether the manager is locked out, and may be let in by the next sweep.
func (k *Keying) Unsure() bool { return k.unsure }

// Begin notes that a sweep begins, with the keys that are known by now.
func (k *Keying) Begin() {
	if k.why, k.unsure, k.Listed = nil, false, false; k.Config != nil {
		k.merged = k.Config.Book.Merged()
	}
}

// LockOut enters why devices do not let the manager in. It reports whether that is known for
// good: if not, what other managers stored is to be read again, and then Read called.
func (k *Keying) LockOut(why error) (final bool) {
	if k.Config == nil || !k.Config.Shared {
		return true
	}
	k.why, k.unsure = why, true
	return false
}

// Read tells, after LockOut, that the book has what other managers stored, or why that cannot
// be read. It returns again if they have stored something since the sweep began, keys or a list of
// cables; else why the
// manager is locked out for good. Both are none where nobody waits to know.
func (k *Keying) Read(err error) (again bool, why error) {
	switch {
	case k.why == nil:
		return false, nil
	case err == nil && (k.Listed || k.Config.Book.Merged() != k.merged):
		why = nil
	default:
		why = errors.Join(k.why, err)
	}
	k.why, k.unsure = nil, why == nil
	return why == nil, why
}
