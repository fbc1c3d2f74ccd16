// Package rest is what requests of the API have in common, whatever they are about: JSON that
// can be read in one way only, merge patches (RFC 7396), preconditions (If-Match and
// If-None-Match), and errors (RFC 9457).
package rest
