// Package source provides what the readers of policy files share: text with
// positions, parsing of numbers and words, collection of
// faults, and the checks that hold for every format.
//
// It knows no format.
package source
