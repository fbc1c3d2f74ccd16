// Package archtest holds the rules of the house as ordinary tests: which wing
// imports which, what the pure wings may not touch, how long files, functions
// and packages may be, that ARCHITECTURE.md has every package, and that every row of docs/conformance.md names a rule, code and a test that exist.
// ARCHITECTURE.md has the picture; this is what keeps it true. It contains
// nothing but tests.
package archtest
