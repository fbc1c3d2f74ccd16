// Package progress prints the progress of long operations to standard error about once
// a second. An operation of less than a second prints nothing.
package progress
