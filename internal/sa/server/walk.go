package server

// Walk is how far a query has come that is answered in turns, so that nobody
// waits long for another's. The zero value does all of it in one turn.
type Walk struct {
	// Most is how many ports and records one turn may look at, one port with all
	// that belongs to it at least; 0 for any number.
	Most int

	at   int // where to go on
	left int
	more bool
}

// begin begins a turn.
func (w *Walk) begin() { w.left, w.more = w.Most, false }

// ended reports whether the turn ends before element i.
func (w *Walk) ended(i int) bool {
	if w.Most > 0 && w.left <= 0 {
		w.at, w.more = i, true
		return true
	}
	w.left--
	return false
}

// More reports whether the query is not done with.
func (w *Walk) More() bool { return w.more }

// Restart has a query begin again: what it goes over is not the same any more.
func (w *Walk) Restart() { w.at, w.more = 0, false }
