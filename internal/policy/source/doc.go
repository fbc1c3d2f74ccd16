// Package source is what the readers of policy files share: text that knows
// its place, numbers and words as people write them, the faults found on the
// way, and the checks that hold for every format.
//
// It knows nothing of any format.
package source
