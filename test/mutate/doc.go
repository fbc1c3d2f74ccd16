// Command mutate runs mutation tests: it breaks the code of every rule of
// docs/dev/conformance.md, docs/dev/routing-rules.md and docs/dev/service-rules.md once and checks that
// the tests in the rule's row fail.
//
// Each such change is a mutant. The files in mutants have them, one file for each
// group of rules: the function, the original text and its replacement.
// Places are a package and the name of a function, method, variable, constant or
// type, so mutants stay valid when code moves to another file.
//
// All mutants are in one build: a function with mutants is followed by a changed
// copy for each, and begins by checking the environment variable
// IBWARDEN_MUTANT, which selects one. This uses an overlay (go help build); the sources
// do not change. Constants and types cannot be switched while a program
// runs: their mutants are built one by one.
//
// For each mutant the tests of its row run, quick ones first, until one fails
// that passes without the mutant. Then the mutant is caught; it is also caught when a
// test does not end. A mutant that does not apply, does not compile, or
// is not in the code that the row names, is an error.
//
// With -stories it asks of each rule line of the scripts in scenarios whether the section below
// it fails with one break at least of each rule that it names: a section that holds whatever is
// broken shows nothing, which is an error. With -lines it lists the single expectations that no
// break of the rules of their section breaks.
//
// With -random it breaks code at places drawn by -seed instead, by its syntax alone: a
// condition is negated, an early return, a statement or an operand dropped, a comparison
// changed, nil returned for an error. Each break is a build of its own, and runs the tests of
// its package; where it has none, those of the nearest package above, or of those beside it
// that use it.
package main
