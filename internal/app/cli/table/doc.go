// Package table prints rows with named columns: as aligned columns for people, or
// as one JSON document for programs. It also formats a fabric that was read:
// its nodes, ports, cables, addresses, routes and keys.
package table
