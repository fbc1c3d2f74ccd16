// Package tracetext prints the result of `ibwarden trace`, the path of a packet, and knows
// which P_Key a packet has by default.
package tracetext
