// Package table prints rows with named columns: for people as columns, for
// programs as one JSON document. It also lays out what a fabric that was read
// looks like: its nodes, ports, cables, addresses, routes and keys.
package table
