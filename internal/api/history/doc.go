// Package history shows each caller of the API as much of the revisions and of the audit log as
// concerns him.
package history
