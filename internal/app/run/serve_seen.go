package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// seenName is the name of the file beside a store in a file that has what was seen of it, and
// seenSuffix what is added to the name of the state file for the other copy: who puts an older
// store in place may put one of the two in place with it.
const (
	seenName   = "seen.json"
	seenSuffix = ".seen"
)

// seenFileMax is the most bytes of such a file that is read.
const seenFileMax = 1 << 20

// seenFile is the form of the file.
type seenFile struct {
	Version int `json:"version"`
	store.Seen
}

const seenVersion = 1

// seenFiles are the copies of what was seen of a store, for a store in a file, dir is its directory.
type seenFiles struct {
	paths []string

	mu     sync.Mutex
	log    *slog.Logger
	failed bool // the last writing, which was told
}

func newSeenFiles(dir, state string) *seenFiles {
	f := new(seenFiles)
	if dir != "" {
		f.paths = append(f.paths, filepath.Join(dir, seenName))
	}
	if state != "" {
		f.paths = append(f.paths, state+seenSuffix)
	}
	return f
}

// read is the newest copy. One that is damaged is an error.
func (f *seenFiles) read() (seen store.Seen, err error) {
	for _, path := range f.paths {
		data, err := files.Read(path, seenFileMax)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var x seenFile
		if err == nil {
			if err = resource.UnmarshalStored(data, &x); err == nil && x.Version != seenVersion {
				err = fmt.Errorf("version %d, want %d", x.Version, seenVersion)
			}
		}
		if err != nil {
			return seen, fmt.Errorf("what was seen of the store, %s: %w; remove it if you know that the store is not older than it was", path, err)
		}
		if x.Serial > seen.Serial {
			seen = x.Seen
		}
	}
	return seen, nil
}

// keep writes all copies. What could not be written is told once, until it could.
func (f *seenFiles) keep(seen store.Seen) {
	data, err := json.Marshal(seenFile{seenVersion, seen})
	for _, path := range f.paths {
		err = cmp.Or(err, files.Replace(path, files.Bytes(append(data, '\n'))))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && !f.failed && f.log != nil {
		f.log.Warn("what was seen of the store could not be kept, so that an older one in its place would not be noticed after a restart: " + err.Error())
	}
	f.failed = err != nil
}

func (f *seenFiles) tells(log *slog.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = log
}

// missing is how many revisions that were seen the store does not have, and is not accepted
// without; at least 1 where it was rolled back.
func (s *Service) missing() int {
	if s.Service == nil {
		return 0
	}
	back := s.Back()
	if back == nil {
		return 0
	}
	from, to := back.Missing()
	return int(max(1, to+1-min(from, to)))
}

// waits reports whether an error of a policy file means that the service takes no changes now:
// then the file waits until it does.
func waits(err error) bool {
	for _, x := range []error{store.ErrRolledBack, store.ErrFull, store.ErrUnavailable} {
		if errors.Is(err, x) {
			return true
		}
	}
	return false
}
