package need

import "os"

// memory is where Linux has a file system in memory.
const memory = "/dev/shm"

// Memory is the directory for temporary directories of tests that write much, or whose
// programs wait for what they write to be on the disk: in memory where there is such a file
// system, else that of os.TempDir. Tests run side by side, and on a disk that one of them
// fills the others would wait for it.
func Memory() string {
	if info, err := os.Stat(memory); err != nil || !info.IsDir() || info.Mode().Perm()&0o222 == 0 {
		return os.TempDir()
	}
	return memory
}
