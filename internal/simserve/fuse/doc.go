// Package fuse serves a small tree of directories, text files and devices to
// programs of this machine, through the kernel's FUSE protocol over
// /dev/fuse.
//
//	Mount   opens a connection and mounts it at a directory
//	Serve   answers the kernel on a connection until it is unmounted
//
// The tree is made of Directory, Text and Device values, and its shape is fixed, since
// the kernel caches names. Content is not cached: a program reads what
// the tree holds at that time.
//
// A Device is what FUSE libraries do not serve and why this package exists: a file
// with ioctls, blocking reads, and poll. The tree answers open and read at once or
// later; a program whose wait is interrupted by a signal
// gets EINTR, and the data it waited for stays queued.
//
// The tree is only used from within Config.Do, one request at a time, in the
// order in which the kernel sent them.
//
// It works on Linux only; on other systems Mount returns an error.
package fuse
