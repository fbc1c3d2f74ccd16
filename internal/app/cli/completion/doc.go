// Package completion knows the words that flags take, for shells to complete:
// Add enters them for a command and all below it. Names of commands and flags
// cobra knows by itself.
package completion
