// Package golden compares what followed from a row of steps with what followed when a file below
// testdata was written, which the flag -update writes again.
package golden
