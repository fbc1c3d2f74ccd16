// Package tracetext parses the arguments of `ibwarden trace` and prints its result: the
// end ports, the default P_Key between them, and the path of the packet.
package tracetext
