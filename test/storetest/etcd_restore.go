package storetest

import (
	"os"
	"path/filepath"
)

// Copy stops the cluster, copies what its members have, and starts it again.
func (c *Cluster) Copy() (dir string) {
	c.T.Helper()
	dir = c.T.TempDir()
	for i := range Members {
		c.Kill(i)
	}
	for i := range Members {
		if err := os.CopyFS(filepath.Join(dir, filepath.Base(c.dirs[i])), os.DirFS(c.dirs[i])); err != nil {
			c.T.Fatal(err)
		}
	}
	c.start()
	return dir
}

// Restore stops the cluster, puts a copy in its place, and starts it again: revisions of etcd go
// back with what it has.
func (c *Cluster) Restore(dir string) {
	c.T.Helper()
	for i := range Members {
		c.Kill(i)
	}
	for i := range Members {
		if err := os.RemoveAll(c.dirs[i]); err != nil {
			c.T.Fatal(err)
		}
		if err := os.CopyFS(c.dirs[i], os.DirFS(filepath.Join(dir, filepath.Base(c.dirs[i])))); err != nil {
			c.T.Fatal(err)
		}
		if err := os.Chmod(c.dirs[i], 0o700); err != nil {
			c.T.Fatal(err)
		}
	}
	c.start()
}

func (c *Cluster) start() {
	c.T.Helper()
	for i := range Members {
		c.Start(i)
	}
	c.Healthy()
}
