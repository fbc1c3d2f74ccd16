// Package tracetext is what ibwarden trace asks and shows: which end ports a person
// means, which key a packet between them usually has, and its way for people.
package tracetext
