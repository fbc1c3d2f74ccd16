// Package text splits a script into lines and words, and parses numbers, times and
// name=value. Every error is a *Fault with the line and the column, in
// characters from 1, and says what was expected. It knows no statement.
package text
