// Package telemetry serves the metrics and the health of a running manager over HTTP.
//
//	New      a Telemetry; Turn is called whenever the engine loop turns
//	Handler  /metrics, /healthz and /readyz, to be served anywhere
//	Listen   serves them on a loopback address
//
// The engine loop never waits for a client: Turn copies the manager's state when a
// scrape asked for it, at most once in CopyEvery, and clients get the last copy. A loop
// that hangs is not healthy.
package telemetry
