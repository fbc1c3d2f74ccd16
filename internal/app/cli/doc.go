// Package cli implements ibwarden's command line: commands, flags, output and
// exit status. With --json a command prints one document to
// standard output; progress and messages go to standard error.
package cli
