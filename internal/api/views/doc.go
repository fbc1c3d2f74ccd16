// Package views is what callers of the API are shown of a fabric, its proof and its history:
// the provider all of it, a tenant his own ports and partitions and what concerns them. Each
// file is named after the view that it belongs to.
package views
