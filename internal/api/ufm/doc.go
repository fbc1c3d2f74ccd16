// Package ufm answers the REST calls of NVIDIA's UFM for partitions and inventory, so
// that programs which were written for it work with the service unchanged.
//
// New returns a handler for everything below /ufmRest, /ufmRestV2, /ufmRestV3,
// /ufmRestKrb and for /dologin; Owns tells which paths these are. Every path is
// answered with and without a slash at its end, and no answer is a redirect: a client
// that follows one repeats a POST as a GET and takes the answer for success.
//
// Who calls is decided by his credential alone, and what he may do by package resource:
// a call changes something by service.Do or not at all. UFM has no conditional writes.
// Therefore a call says what is to be different (resource.AmendPartition) and not what
// the whole is to be, so that of two writers neither undoes what the other did.
//
// A client learns from a 200 that the change is stored, and in most cases that it is
// proved on the fabric: the answer waits for that, within a bound (Options.Wait).
package ufm
