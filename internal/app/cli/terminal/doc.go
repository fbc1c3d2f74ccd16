// Package terminal is what commands have in common on a terminal: tables, progress, exit
// statuses, and the version.
package terminal
