// Package archtest holds the rules of the house as ordinary tests: which floor
// imports which, what the pure floors may not touch, how long a file and a
// function may be, and that every row of docs/conformance.md names a rule and
// a test that exist. ARCHITECTURE.md has the picture; this is what keeps it
// true. It contains nothing but tests.
package archtest
