// Package text cuts a script into lines and words, and reads numbers, times and
// name=value from them. Every error is a *Fault with the line and the column, in
// characters from 1, and says what was wanted. It knows no statement.
package text
