// This file loads the topology that a command line names: the
// demonstration, the output of a generator, or a file with its includes.

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// FindTopology is the topology that a specification names: nothing for the
// demonstration, a generator with its parameters, or a file. What is both a
// file's name and a generator's is a file.
func FindTopology(spec string) (*topology.Netlist, []topology.Warning, error) {
	if spec == "" {
		return topology.Demo(), nil, nil
	}
	l, warnings, err := ReadTopology(spec)
	if errors.Is(err, fs.ErrNotExist) && !isIncluded(err) {
		generated, genErr := topology.Generate(spec)
		if genErr != nil {
			return nil, nil, fmt.Errorf("%s: no such file, and no generator: %w", spec, genErr)
		}
		return generated, nil, nil
	}
	return l, warnings, err
}

// ReadTopology reads a topology file and the files that it includes; a relative name is relative
// to the directory of the file given here.
func ReadTopology(path string) (*topology.Netlist, []topology.Warning, error) {
	data, err := files.Read(path, topology.FileSizeMax)
	if err != nil {
		return nil, nil, err
	}
	return topology.Read(data, path, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		data, err := files.Read(name, topology.FileSizeMax)
		if err != nil {
			return nil, included{err}
		}
		return data, nil
	})
}

// included is an error of a file that another includes.
type included struct{ error }

func (e included) Unwrap() error { return e.error }

func isIncluded(err error) bool {
	var e included
	return errors.As(err, &e)
}
