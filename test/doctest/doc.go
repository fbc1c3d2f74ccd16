// Package doctest runs what the pages show. In README.md and docs/*.md a line
// "$ command" inside a fenced block is a command, and the lines up to the next
// one are what it prints, on standard output and standard error.
//
// The commands of a page run in order, in one shell, in a copy of examples/, with
// the ibwarden of this tree first in PATH. What they print is compared with the
// page line by line; only what testdata/varies.txt lists (times, durations,
// process ids) may differ. A line "[...]" stands for any number of lines.
//
// A command that ends with & goes on in the background: the next one runs when
// the lines shown below it have been printed. A block that needs a program, FUSE
// or root is left out where these are missing, and fails in CI. A block that
// nothing can run says so in the line before it: "Not run by the tests: why".
//
// go test ./test/doctest -update writes what was printed into the pages.
package doctest
