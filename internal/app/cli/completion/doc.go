// Package completion provides the shell completion of flag values and arguments: words,
// and names from this machine, the policy or the fabric of the command line, which is
// only read. Add registers them for a command and its subcommands. cobra completes the
// names of commands and flags.
package completion
