package graph

// Workers do work at the same time; the zero value is the caller alone.
type Workers struct {
	// Count is how many there are, Run has them call do for 0 to n-1, in any order or at
	// once, and returns when all have returned.
	Count int
	Run   func(n int, do func(i int))
}

// Split has do called for 0 to n-1, in parts from first to last-1.
func (w Workers) Split(n int, do func(first, last int)) {
	if w.Count < 2 || w.Run == nil || n < w.Count {
		do(0, n)
		return
	}
	w.Run(w.Count, func(i int) { do(i*n/w.Count, (i+1)*n/w.Count) })
}
