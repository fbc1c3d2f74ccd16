// Package fuse serves a small tree of directories, texts and devices to
// programs of this machine, by speaking the kernel's FUSE protocol over
// /dev/fuse.
//
//	Mount   opens a connection and mounts it at a directory
//	Serve   answers the kernel on a connection until the mount is gone
//
// The tree is made of Directory, Text and Device values, and keeps its shape: the
// kernel remembers names. It remembers no content: what a program reads is what
// the tree says then.
//
// A Device is what no FUSE library serves and why this package exists: a file
// with ioctls, reads that wait, and poll. Opening and reading are answered when
// the tree says so, at once or later; a program that a signal takes out of its
// wait gets EINTR, and what it waited for stays where it was.
//
// The tree is only touched from within Config.Do, one request at a time, in the
// order in which the kernel sent them.
//
// It works on Linux only; Mount says so elsewhere.
package fuse
