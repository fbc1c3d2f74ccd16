// Package archtest checks the rules of the code base as ordinary tests: allowed imports,
// purity, the length of files, functions
// and packages, that ARCHITECTURE.md has every package, that every row of
// docs/dev/conformance.md, and of the pages with the program's own rules, names a rule, code and a
// test that exist, and that every capability bit of the codec is decided on.
// ARCHITECTURE.md describes these rules. The package contains only tests.
package archtest
