// Package files reads and replaces the files that a manager keeps across restarts, and other
// regular files of bounded size, so that a crash leaves the old file or the new one.
//
// # What a run that only reads keeps
//
// OpenShadow keeps the records of package shadow in a directory: lines of JSON that are
// only ever appended, in files that a report reads while they are written. It is bounded: the
// oldest files go first.
package files
