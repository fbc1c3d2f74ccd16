//go:build !linux

package cli

import "io/fs"

// ownerOf is known where commands run inside simulated fabrics, on Linux.
func ownerOf(fs.FileInfo) (uid int, known bool) { return 0, false }
