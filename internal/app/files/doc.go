// Package files reads and replaces the files that a manager keeps across restarts, and other
// regular files of bounded size, so that a crash leaves the old file or the new one.
package files
