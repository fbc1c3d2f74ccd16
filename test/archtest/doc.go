// Package archtest holds the rules of the house as ordinary tests: which floor
// imports which, what the pure floors may not touch, how long files, functions
// and packages may be, that ARCHITECTURE.md has every package on its floor, and
// that every row of docs/conformance.md names a rule, code and a test that exist.
// ARCHITECTURE.md has the picture; this is what keeps it true. It contains
// nothing but tests.
package archtest
