// Package completion knows what flags and arguments may be, for shells to complete:
// words, and what stands in this machine, in a policy or in the fabric of the command
// line, which is read and not written to. Add enters them for a command and all below
// it. Names of commands and flags cobra knows by itself.
package completion
