// Package terminal is what commands have in common on a terminal: tables, progress, exit
// statuses, and the version.
//
// # Full screen
//
// Model shows lists of a service on the whole of a terminal. It is a value that knows no
// terminal: keys, answers and the time go in; what is to be asked, and lines, come out. Run joins
// it to the terminal.
package terminal
