// Command mutate breaks every rule of docs/conformance.md once and looks whether
// the tests that the rule's row names notice.
//
// A break is called a mutant. The files in mutants have them, one file for each
// group of rules: which function, what stands there, what stands there instead.
// Places are a package and the name of a function, method, variable, constant or
// type, so mutants stay where they are when files move.
//
// One build has all mutants: a function that has some is followed by a changed
// copy for each, and begins with a look at which mutant the environment variable
// IBWARDEN_MUTANT names. That is done in an overlay (go help build); the sources
// know nothing of it. Constants and types cannot be told apart while a program
// runs: their mutants are built one by one.
//
// For each mutant the tests of its row run, quick ones first, until one fails
// that passes without the mutant. Then the mutant is caught; it is too when a
// test does not come to an end. A mutant that does not apply, does not compile, or
// is not in the code that the row names, is an error.
package main
