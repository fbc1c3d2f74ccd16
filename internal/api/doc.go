// Package api is the service's interface for programs: REST below /api/v1, described
// by OpenAPI 3.1, over package service.
//
//	New        the handlers
//	Listen     the Unix socket and TCP listeners (package listen)
//	Serve      serves handlers on them until the context ends
//
// Who calls is decided before anything of a request but its header is read (see
// auth.go): on the Unix socket by peer credentials, elsewhere by a bearer token or a
// client certificate that the provider registered. A token decides wherever one is
// given, so root can act as a tenant and nobody gets more by what he sends.
//
// What a tenant may not see does not exist for him: the answer to a request about a
// foreign object has the status and the text of one about an object that is not there.
//
// Writes take If-Match (the ETag of what the caller has seen), Idempotency-Key, dry_run
// and wait; package rest says what a write without If-Match may do. Every error is a
// Problem (RFC 9457).
//
// UFM's calls (package ufm) are served next to it, to the same callers; they have errors
// and bodies of their own.
package api
