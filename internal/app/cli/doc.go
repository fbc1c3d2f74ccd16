// Package cli is ibwarden's command line: the commands, their flags, what they
// print and how they exit. What a command prints for programs (--json) goes to
// standard output as one document; progress and remarks go to standard error.
package cli
