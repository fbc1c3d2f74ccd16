package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/migrate/opensm"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// Where OpenSM has its files, as packages build it.
const (
	defaultDir   = "/etc/opensm"
	defaultCache = "/var/cache/opensm"
	confFile     = "opensm.conf"
)

// found are the files of an OpenSM.
type found struct {
	conf  *opensm.Conf
	files map[opensm.Kind]opensm.Text
	paths []string
}

// locate reads the files of the OpenSM in dir; empty for this machine's.
func locate(dir string) (*found, error) {
	given := dir != ""
	if !given {
		dir = defaultDir
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = errors.New("no directory")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: want the directory with OpenSM's %s", dir, err, confFile)
	}
	f := &found{files: map[opensm.Kind]opensm.Text{}, paths: []string{}}
	text, some, err := f.first(opensm.ConfSizeMax, filepath.Join(dir, confFile))
	if err != nil {
		return nil, err
	}
	if !some {
		text.Path = filepath.Join(dir, confFile)
	}
	if f.conf, err = opensm.ReadConf(text); err != nil {
		return nil, err
	}
	for _, w := range f.conf.Files() {
		limit := int64(opensm.ListSizeMax)
		if w.Kind == opensm.Partitions {
			limit = policyfile.ConfSizeMax
		}
		text, there, err := f.first(limit, places(dir, given, w)...)
		if err != nil {
			return nil, err
		}
		if there {
			f.files[w.Kind] = text
		}
		some = some || there
	}
	if !some {
		return nil, fmt.Errorf("%s: neither %s nor another file of OpenSM is there", dir, confFile)
	}
	return f, nil
}

// places are where a file may be, the first that is there counts.
func places(dir string, given bool, w opensm.Wanted) (out []string) {
	if w.Path == "" { // of the cache
		name := string(w.Kind)
		if !given {
			return []string{filepath.Join(defaultCache, name)}
		}
		return []string{filepath.Join(dir, "cache", name), filepath.Join(dir, name)}
	}
	if given {
		out = append(out, filepath.Join(dir, filepath.Base(w.Path)))
	}
	if w.Named || !given { // what is not named in a copy is not that of this machine
		out = append(out, w.Path)
	}
	return out
}

// first reads the first of some files that is there. One that is there and cannot be read is
// an error: OpenSM would go on without it.
func (f *found) first(limit int64, paths ...string) (opensm.Text, bool, error) {
	for _, path := range paths {
		data, err := files.Read(path, limit)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return opensm.Text{}, false, err
		}
		f.paths = append(f.paths, path)
		return opensm.Text{Path: path, Data: data}, true, nil
	}
	return opensm.Text{}, false, nil
}
