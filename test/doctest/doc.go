// Package doctest runs the commands on documentation pages and compares their output. In
// README.md, docs/*.md and docs/dev/*.md a line "$ command" inside a fenced block is a
// command, and the lines up to the next one are its output, on standard output and
// standard error.
//
// The commands of a page run in order, in one shell, in a copy of examples/, with
// the ibwarden of this tree first in PATH; "go run ./cmd/ibwarden" is that program too. The
// output is compared with the page line by line; only what testdata/varies.txt lists (times,
// durations, process ids) may differ. A line "[...]" stands for any number of lines.
//
// A block whose fence has a file name after the language ("ibs first.ibs") is that file, which
// the reader saves and the commands after it find.
//
// A command that ends with & runs in the background: the next one starts when
// the lines shown below it have been printed. A block that needs a program, FUSE
// or root is skipped where these are missing, and fails in CI. A block that
// cannot be run says so in the line before it: "Not run by the tests: why".
//
// go test ./test/doctest -update writes the output into the pages.
package doctest
