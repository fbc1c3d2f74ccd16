// Package progress says on standard error about once a second that something
// goes on. What takes less than a second says nothing.
package progress
