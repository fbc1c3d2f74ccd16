package run

import (
	"fmt"
	"io"

	"github.com/ibwarden/ibwarden/internal/api/racks"
	"github.com/ibwarden/ibwarden/internal/app/files"
)

// racksHelp explains --racks: briefly, for the help of run.
const racksHelp = "file of racks (which device is in which pod and rack, for the map: docs/console.md)"

// readRacks reads the file of racks; nil without one.
func (f *Flags) readRacks() (*racks.File, error) {
	if f.racks == "" {
		return nil, nil
	}
	text, err := files.Read(f.racks, racks.FileSizeMax)
	if err != nil {
		return nil, fmt.Errorf("--racks: %w", err)
	}
	read, err := racks.Read(text, f.racks)
	if err != nil {
		return nil, fmt.Errorf("--racks: %w", err)
	}
	return read, nil
}

// reloadRacks reads the file of racks again. One with a fault changes nothing.
func (s *Service) reloadRacks(f *Flags, stderr io.Writer) error {
	if s == nil || f.racks == "" {
		return nil
	}
	read, err := f.readRacks()
	if err != nil {
		return err
	}
	s.racks.Store(read)
	fmt.Fprintln(stderr, "racks read again")
	return nil
}
